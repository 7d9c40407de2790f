package diskengine

import (
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// scan takes the candidates in sstables, in the order of the list. It merges scans of all
// sstables.
func (l *listing) scan(c *call) (err error) {
	var heads []*scanned // each stands at an entry
	defer func() {
		for _, h := range heads {
			err = errors.Join(err, h.close())
		}
	}()
	for _, src := range l.set.Of[l.area()] {
		part, ok := src.Queue(l.q.num)
		if !ok {
			continue
		}
		h, err := l.scanOf(src, part)
		if err != nil {
			return err
		}
		if ok, err := h.next(c); err != nil {
			return err
		} else if ok {
			heads = append(heads, h)
		}
	}
	for n := 0; len(heads) > 0; {
		h := slices.MinFunc(heads, func(a, b *scanned) int {
			if l.newest {
				a, b = b, a
			}
			return a.candidate().Compare(b.candidate().Place)
		})
		x, more := h.candidate(), false
		if l.span.Holds(x.Place) { // otherwise it does not hold those after it either
			if n == 0 || x.Place != l.seen[len(l.seen)-1].Place {
				if n == l.candidates() {
					l.end = false
					return nil
				}
				l.seen = append(l.seen, x)
				n++
			}
			if more, err = h.next(c); err != nil {
				return err
			}
		}
		if more {
			continue
		}
		heads = slices.DeleteFunc(heads, func(o *scanned) bool { return o == h })
		if err := h.close(); err != nil {
			return err
		}
	}
	return nil
}

// scanOf prepares a scan of the part of an sstable that the queue and the span have.
func (l *listing) scanOf(src *store.Source, part sstable.Queue) (*scanned, error) {
	edge := l.span.Low
	if l.newest {
		edge = l.span.High
	}
	at, err := l.search(src, edge)
	if err != nil {
		return nil, err
	}
	h := &scanned{src: src, from: part.From, to: part.To, back: l.newest}
	if l.newest {
		h.to = min(at, part.To)
	} else {
		h.from = max(at, part.From)
	}
	return h, nil
}

// search finds where a place is in an sstable; in a damaged block, where that block begins.
func (l *listing) search(src *store.Source, p codec.Place) (uint32, error) {
	at := sstable.Place{Queue: l.q.num, At: p.At, ID: uint64(p.ID)}
	pos, err := src.Search(at)
	if errors.Is(err, sstable.ErrDamaged) {
		return src.Behind(at), nil
	}
	return pos, err
}

// scanned is a scan of an sstable for a list. It stands at an entry.
type scanned struct {
	src      *store.Source
	from, to uint32
	back     bool
	scan     *sstable.Scan // nil: it begins at from, or at to if back
}

// next goes to the next entry, and reports whether there is one. Like a lease, it passes over
// a damaged block.
func (s *scanned) next(c *call) (bool, error) {
	for s.scan != nil || s.from < s.to {
		switch {
		case s.scan != nil:
		case s.back:
			s.scan = s.src.ScanBack(s.from, s.to).Heads(0)
		default:
			s.scan = s.src.Scan(s.from, s.to).Heads(0)
		}
		if s.scan.Next() {
			return true, nil
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
		c.e.store.Slog.Error("tarry disk: messages in a damaged block of an sstable are not listed; tarry check --salvage saves the others", "dir", c.e.store.Dir, "error", err)
	}
	return false, nil
}

func (s *scanned) close() error {
	if s.scan == nil {
		return nil
	}
	err := s.scan.Close()
	s.scan = nil
	return err
}

func (s *scanned) candidate() candidate {
	e := s.scan.Entry()
	return candidate{codec.Place{At: e.At, ID: engine.ID(e.ID)}, store.Spot{Src: s.src, Pos: e.Pos}}
}
