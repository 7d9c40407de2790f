package check

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// part is a run of the store.
type part struct {
	number   uint64 // it had in the damaged one
	is       manifest.Run
	run      *run.Run      // that counts; nil: not yet, or none
	salvaged *run.Salvaged // nil: it is sound, or lost
	lost     bool
}

func (p *part) keys() bool { return recent.Area(p.is.Area) == recent.Finished }

// part opens a run, sound or not, with who has died in it.
func (r *rescue) part(p *part) error {
	if err := r.open(p); err != nil || p.lost {
		return err
	}
	of := p.run
	if p.salvaged != nil {
		of = p.salvaged.Run
	}
	if err := r.deaths(p, of); err != nil || p.salvaged == nil {
		return err
	}
	return r.holes(p)
}

func (r *rescue) open(p *part) error {
	dir, cfg := r.path(runsName), &run.Config{ID: r.state.Store, Pace: r.pace}
	name := run.Name(dir, p.number)
	at, there := r.has.runs[p.number]
	if !there {
		p.lost = true
		r.lostRun(p, "the run is missing")
		return nil
	}
	var damage *disk.DamageError
	if at == name && !r.rebuilt && p.is.Area <= uint8(recent.Finished) {
		sound, err := run.Open(r.fs, dir, p.number, cfg)
		if err == nil {
			if err = sound.VerifyValues(r.pace, func(e run.Entry) (run.Key, error) { return r.keyOf(recent.Area(p.is.Area), e) }); err == nil {
				p.run = sound
				return nil
			}
			err = errors.Join(err, sound.Close())
		}
		if !errors.As(err, &damage) {
			return err
		}
	}
	s, err := run.Salvage(r.fs, dir, p.number, cfg, p.is.Entries)
	if errors.As(err, &damage) {
		p.lost = true
		r.lostRun(p, damage.Reason)
		return nil
	}
	p.salvaged = s
	if err == nil && (r.rebuilt || p.is.Area > uint8(recent.Finished)) {
		err = r.areaOf(p)
	}
	return err
}

var errEnough = errors.New("enough was read")

// areaOf finds out of what area the entries of a run are.
func (r *rescue) areaOf(p *part) error {
	var fits [recent.Finished + 1]int
	n := 0
	err := p.salvaged.Each(func(e run.Entry, _ bool) error {
		for a := range fits {
			if _, err := r.keyOf(recent.Area(a), e); err == nil {
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

// deaths notes who has died in a run. Of several files that say so the oldest one is taken: a newer
// one may name who has died by something that was never durable.
func (r *rescue) deaths(p *part, of *run.Run) error {
	from := []uint64{p.is.Marks}
	if r.rebuilt {
		from = nil
		for number := range r.has.marks {
			from = append(from, number)
		}
		slices.Sort(from)
	} else if p.is.Marks == 0 {
		return nil
	}
	for _, number := range from {
		err := marks.Restore(r.fs, r.path(runsName), number, r.state.Store, []*run.Run{of})
		var damage *disk.DamageError
		if err == nil {
			return nil
		}
		if !errors.As(err, &damage) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !r.rebuilt {
		r.losses = append(r.losses, Loss{File: marks.Name(r.path(runsName), p.is.Marks), Offset: -1, Again: true,
			What: fmt.Sprintf("who of run %d has died, %d of %d, is not known", p.number, p.is.Entries-p.is.Alive, p.is.Entries)})
	}
	return nil
}

// anew writes a run anew from what can be read of it. Who has died in it is left out, unless there are
// others of which he tells that they are of before.
func (r *rescue) anew(p *part) (err error) {
	if p.salvaged == nil {
		return nil
	}
	number := r.number()
	w, err := run.Create(r.disk.FS, r.path(runsName), number, &run.Config{ID: r.state.Store, Pace: r.pace})
	if err != nil {
		return err
	}
	defer func() {
		if p.run == nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	wrong, n := 0, uint32(0)
	var dead []uint32
	err = p.salvaged.Each(func(e run.Entry, placed bool) error {
		died := placed && e.Pos < p.salvaged.Len() && !p.salvaged.Alive(e.Pos)
		if died && !r.rebuilt {
			return nil
		}
		key, err := r.keyOf(recent.Area(p.is.Area), e)
		if err != nil {
			wrong++
			return nil
		}
		if died {
			dead = append(dead, n)
		}
		n++
		return w.Add(e.Place, key, e.Value)
	})
	if wrong > 0 {
		r.losses = append(r.losses, Loss{File: run.Name(r.path(runsName), p.number), Offset: -1, What: "values that are none", Messages: int64(wrong), Keys: p.keys()})
	}
	if err != nil || n == 0 {
		return err
	}
	made, err := w.Finish()
	if err != nil {
		return err
	}
	for _, pos := range dead {
		made.Kill(pos)
	}
	p.run = made
	p.is = manifest.Run{Number: number, Area: p.is.Area}
	return nil
}
