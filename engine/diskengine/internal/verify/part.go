package verify

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// part opens an sstable, sound or not, and deletes the entries that were deleted from it.
func (s *salvage) part(p *part) error {
	if err := s.open(p); err != nil || p.lost {
		return err
	}
	if p.salvaged == nil {
		s.restoreDeletions(p, p.table)
		return nil
	}
	s.restoreDeletions(p, p.salvaged.Table)
	return s.holes(p)
}

func (s *salvage) open(p *part) (err error) {
	cfg := &sstable.Config{ID: s.state.Store, Pace: s.pace}
	var damage *vfs.DamageError
	if !s.rebuilt && p.area() < memtable.Areas { // otherwise the secret of keys or the area is not known
		sound, err := sstable.Open(s.fs, s.tablesDir, p.number, cfg)
		if err == nil {
			if err = sound.VerifyValues(s.pace, func(e sstable.Entry) (sstable.Key, error) { return s.keyOf(p.area(), e) }); err == nil {
				p.table = sound
				return nil
			}
			err = errors.Join(err, sound.Close())
		}
		if !errors.As(err, &damage) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	p.salvaged, err = sstable.Salvage(s.fs, s.tablesDir, p.number, cfg, p.is.Entries)
	switch {
	case errors.As(err, &damage):
		p.lost = true
		s.lostTable(p, damage.Reason)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		p.lost = true
		s.lostTable(p, "the sstable is missing")
		return nil
	case err == nil && (s.rebuilt || p.area() >= memtable.Areas):
		return s.areaOf(p)
	}
	return err
}

var errEnough = errors.New("enough was read")

// areaOf finds out which area the entries of an sstable are of.
func (s *salvage) areaOf(p *part) error {
	var fits [memtable.Areas]int
	n := 0
	err := p.salvaged.Each(func(e sstable.Entry, _ bool) error {
		for a := range fits {
			if _, err := s.keyOf(memtable.Area(a), e); err == nil {
				fits[a]++
			}
		}
		if n++; n == 1000 {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for a, n := range fits {
		if n > fits[p.is.Area%uint8(len(fits))] {
			p.is.Area = uint8(a)
		}
	}
	return nil
}

// restoreDeletions deletes the entries that were deleted from an sstable.
func (s *salvage) restoreDeletions(p *part, of *sstable.Table) {
	if p.is.Restore(s.dir, of) != nil {
		s.losses = append(s.losses, Loss{File: s.path(manifest.Name), Offset: -1, Again: true,
			What: fmt.Sprintf("which entries of sstable %d were deleted, %d of %d, is not known", p.number, p.is.Entries-p.is.Alive, p.is.Entries)})
	}
}

// rewrite writes an sstable again, without deleted entries.
func (s *salvage) rewrite(p *part) (err error) {
	wrong := 0
	p.table, err = s.makeTable(func(w *sstable.Writer) error {
		return p.salvaged.Each(func(e sstable.Entry, placed bool) error {
			if placed && e.Pos < p.salvaged.Len() && !p.salvaged.Alive(e.Pos) {
				return nil
			}
			key, err := s.keyOf(p.area(), e)
			if err != nil {
				wrong++
				return nil
			}
			return w.Add(e.Place, key, e.Value)
		})
	})
	if wrong > 0 {
		s.losses = append(s.losses, s.lossOf(p, -1, "values that are none", int64(wrong)))
	}
	return err
}

// makeTable makes an sstable of the new store.
func (s *salvage) makeTable(fill func(*sstable.Writer) error) (made *sstable.Table, err error) {
	w, err := sstable.Create(s.out, s.outTables(), s.number(), &sstable.Config{ID: s.state.Store, Pace: s.pace})
	if err != nil {
		return nil, err
	}
	if err = fill(w); err == nil {
		made, err = w.Finish()
	}
	if err != nil {
		err = errors.Join(err, w.Abort())
	}
	return made, err
}

// keep puts a sound sstable into the new store, and removes a new one that has no live entry.
func (s *salvage) keep(p *part) (err error) {
	switch {
	case p.table == nil:
	case p.table.Count(0, p.table.Len()) > 0 && p.salvaged == nil:
		_, err = vfs.LinkOrCopy(s.fs, sstable.Name(s.tablesDir, p.number), sstable.Name(s.outTables(), p.number), s.pace)
	case p.table.Count(0, p.table.Len()) == 0 && p.salvaged != nil:
		err = p.table.Remove()
		p.table = nil
	}
	return err
}
