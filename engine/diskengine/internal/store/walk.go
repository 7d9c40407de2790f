package store

import (
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Walk gives fn the live entries that sstables have of an area of a queue, in order from a
// position on, until fn returns false; if back, those before it, the last first. It passes over
// damaged blocks. The lock is not held.
func (st *Store) Walk(set *Sources, a memtable.Area, queue uint32, from memtable.Position, back bool, fn func(memtable.Position, Spot) bool) (err error) {
	var heads []*walked // each stands at an entry
	defer func() {
		for _, h := range heads {
			err = errors.Join(err, h.close())
		}
	}()
	for _, src := range set.Of[a] {
		h := st.walked(src, sstable.Place{Queue: queue, At: from.At, ID: from.ID}, back)
		if ok, err := h.next(); err != nil {
			return err
		} else if ok {
			heads = append(heads, h)
		}
	}
	for len(heads) > 0 {
		h := slices.MinFunc(heads, func(a, b *walked) int {
			if back {
				a, b = b, a
			}
			return a.scan.Entry().Compare(b.scan.Entry().Place)
		})
		e := h.scan.Entry()
		if !fn(memtable.Position{At: e.At, ID: e.ID}, Spot{Src: h.src, Pos: e.Pos}) {
			return nil
		}
		more, err := h.next()
		if err != nil {
			return err
		}
		if !more {
			heads = slices.DeleteFunc(heads, func(o *walked) bool { return o == h })
			if err := h.close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// walked is a walk through the part of an sstable that a queue has.
type walked struct {
	st       *Store
	src      *Source
	at       sstable.Place // where it begins
	from, to uint32
	back     bool
	scan     *sstable.Scan // nil: it begins at from, or at to if back
}

// walked prepares a walk through an sstable. The first block may have entries on the other side
// of at, which next passes over.
func (st *Store) walked(src *Source, at sstable.Place, back bool) *walked {
	part, ok := src.Queue(at.Queue)
	h := &walked{st: st, src: src, at: at, from: part.From, to: part.To, back: back}
	switch {
	case !ok:
	case back:
		h.to = min(src.Reach(src.Behind(at), 1), part.To)
	default:
		h.from = max(src.Behind(at), part.From)
	}
	return h
}

// next goes to the next entry, and reports whether there is one.
func (s *walked) next() (bool, error) {
	for s.scan != nil || s.from < s.to {
		switch {
		case s.scan != nil:
		case s.back:
			s.scan = s.src.ScanBack(s.from, s.to).Heads(0)
		default:
			s.scan = s.src.Scan(s.from, s.to).Heads(0)
		}
		for s.scan.Next() {
			if before := s.scan.Entry().Compare(s.at) < 0; before == s.back {
				return true, nil
			}
		}
		at, err := s.scan.At(), errors.Join(s.scan.Err(), s.close())
		switch {
		case !errors.Is(err, sstable.ErrDamaged):
			return false, err
		case s.back:
			s.to = s.src.Begin(at)
		default:
			s.from = s.src.Reach(at, 1)
		}
		s.st.Slog.Error("tarry disk: messages in a damaged block of an sstable are not listed; tarry check --salvage saves the others", "dir", s.st.Dir, "error", err)
	}
	return false, nil
}

func (s *walked) close() error {
	if s.scan == nil {
		return nil
	}
	err := s.scan.Close()
	s.scan = nil
	return err
}
