package memtable

import "math"

// Sealed is a memtable that takes in no more entries: it is being written to sstables. Its
// entries are found as before, and may be removed.
type Sealed struct {
	of *Tables
	w  *table
}

// Seal seals the active memtable, returns it, and begins a new one. Several may be sealed at a
// time.
func (r *Tables) Seal() *Sealed {
	r.active.order()
	r.active.unsorted.shrink(r.pool, 0)
	s := &Sealed{of: r, w: r.active}
	r.sealed = append(r.sealed, s)
	r.active = newTable(r.pool, r.seed)
	return s
}

func (s *Sealed) entry(r ref, h *header) Entry {
	e := s.w.entry(r, h)
	e.Sealed = true
	return e
}

// Len is how many entries are left in the memtable.
func (s *Sealed) Len() int { return s.w.n }

// DueBefore is how many live entries of the memtable are due before a time, and how many
// entries it has in all, without those Listed. It counts in the given number of queues, and
// estimates the others.
func (s *Sealed) DueBefore(at int64, queues int) (due, all int64) {
	w := s.w
	of := int64(0)
	from := item{hi: uint32(placeOf(0, Live)), at: math.MinInt64}
	for ; queues > 0; queues-- {
		c := w.order().seek(from)
		if c.item() == nil || place(c.item().hi).area() != Live {
			break
		}
		from.hi = c.item().hi
		to := from
		to.at = at
		due += w.order().rank(&to) - w.order().rank(&from)
		of += w.counts[place(from.hi)]
		from.hi++
	}
	if of > 0 {
		due = int64(float64(due) * float64(s.Count(Live)) / float64(of))
	}
	return due, int64(w.n) - s.Count(Listed)
}

// pass is how far an area of a sealed memtable has been written to an sstable.
type pass struct {
	last item     // the last that was passed
	next uint32   // the ordinal of the next entry
	left []uint32 // ordinals of entries that were removed after they had been passed
}

// has reports whether an entry of the area was passed.
func (p *pass) has(it *item) bool { return p.next > 0 && !p.last.less(it) }

// Pass gives fn at most so many further entries of an area, in the order of (queue, time, id),
// and returns how many: 0 at the end. The entries have the ordinals 0, 1, and so on. fn must
// not call anything of Tables.
func (s *Sealed) Pass(a Area, most int, fn func(Entry)) int {
	w := s.w
	p := &w.passes[a]
	from := item{hi: uint32(placeOf(0, a)), at: math.MinInt64}
	if p.next > 0 {
		from = p.last
		from.id++ // no entry can be between
	}
	n := 0
	var reads prefetcher
	for c := w.order().seek(from); n < most && c.item() != nil && place(c.item().hi).area() == a; c.next() {
		reads.next(w, &c)
		p.last = *c.item()
		r := ref(p.last.ref)
		h := w.arena.at(r)
		fn(s.entry(r, h))
		h.ordinal = p.next
		p.next++
		n++
	}
	return n
}

// Again lets Pass start over in all areas, after the entries could not be written.
func (s *Sealed) Again() { s.w.passes = [Areas]pass{} }

// Left returns the ordinals of the entries of an area that were removed after they had been
// passed, since the last call.
func (s *Sealed) Left(a Area) []uint32 {
	left := s.w.passes[a].left
	s.w.passes[a].left = nil
	return left
}

// Count is how many entries are left in an area of the memtable.
func (s *Sealed) Count(a Area) (n int64) {
	for p, k := range s.w.counts {
		if p.area() == a {
			n += k
		}
	}
	return n
}

// Drop drops the memtable, once its entries are found elsewhere.
func (s *Sealed) Drop() {
	for i, other := range s.of.sealed {
		if other == s {
			s.of.sealed = append(s.of.sealed[:i:i], s.of.sealed[i+1:]...)
			s.w.close()
			return
		}
	}
}
