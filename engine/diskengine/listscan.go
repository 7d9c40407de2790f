package diskengine

import (
	"container/heap"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// scan takes the candidates in sstables, in the order of the list. It merges scans of all
// sstables.
func (l *listing) scan(c *call) (err error) {
	heads := scans{newest: l.newest}
	defer func() {
		for _, h := range heads.of {
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
			heads.of = append(heads.of, h)
		}
	}
	heap.Init(&heads)
	for n := 0; len(heads.of) > 0; {
		h := heads.of[0]
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
			heap.Fix(&heads, 0)
			continue
		}
		heap.Pop(&heads)
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
func (l *listing) search(src *store.Source, p token.Place) (uint32, error) {
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
	return candidate{token.Place{At: e.At, ID: engine.ID(e.ID)}, store.Spot{Src: s.src, Pos: e.Pos}}
}

func (s *scanned) position() memtable.Position {
	e := s.scan.Entry()
	return memtable.Position{At: e.At, ID: e.ID}
}

// scans is a heap of scans, for package heap.
type scans struct {
	of     []*scanned
	newest bool
}

func (s *scans) Len() int      { return len(s.of) }
func (s *scans) Swap(i, j int) { s.of[i], s.of[j] = s.of[j], s.of[i] }
func (s *scans) Less(i, j int) bool {
	a, b := s.of[i].position(), s.of[j].position()
	if s.newest {
		a, b = b, a
	}
	return before(a, b)
}

// Push implements heap.Interface.
func (s *scans) Push(x any) { s.of = append(s.of, x.(*scanned)) }

// Pop implements heap.Interface.
func (s *scans) Pop() any {
	last := len(s.of) - 1
	h := s.of[last]
	s.of = s.of[:last]
	return h
}
