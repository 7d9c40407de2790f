package memtable

import (
	"math"
	"slices"
)

// Sealed is a memtable that takes in no more entries, or several that were joined: it is being
// written to sstables. Its entries are found as before, and may be removed.
type Sealed struct {
	of     *Tables
	tables []*table
}

// Seal seals the active memtable, returns it, and begins a new one. Several may be sealed at a
// time.
func (r *Tables) Seal() *Sealed {
	w := r.active
	w.order()
	w.unsorted.shrink(r.pool, 0)
	w.sealed = true
	r.sealed = append(r.sealed, w)
	r.active = newTable(r.pool, r.seed)
	return &Sealed{of: r, tables: []*table{w}}
}

// Join makes another memtable part of this one, to be written to the same sstables. Nothing of
// either was passed yet, and the other is not used any more.
func (s *Sealed) Join(o *Sealed) {
	for _, w := range o.tables {
		w.passes = s.tables[0].passes
	}
	s.tables = append(s.tables, o.tables...)
}

// Len is how many entries are left in it.
func (s *Sealed) Len() (n int) {
	for _, w := range s.tables {
		n += w.n
	}
	return n
}

// DueBefore is how many of its live entries are due before a time, and how many
// entries it has in all, without those Listed. It counts in the given number of queues, and
// estimates the others.
func (s *Sealed) DueBefore(at int64, queues int) (due, all int64) {
	for _, w := range s.tables {
		due += w.dueBefore(at, queues)
	}
	return due, int64(s.Len()) - s.Count(Listed)
}

func (w *table) dueBefore(at int64, queues int) (due int64) {
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
		due = int64(float64(due) * float64(w.count(Live)) / float64(of))
	}
	return due
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
func (s *Sealed) Pass(a Area, most int, fn func(Entry)) (n int) {
	p := &s.tables[0].passes[a]
	from := item{hi: uint32(placeOf(0, a)), at: math.MinInt64}
	if p.next > 0 {
		from = p.last
		from.id++ // no entry can be between
	}
	var room [4]areaCursor
	k := walker{placeOf(0, a), areaOf, room[:0]}
	for _, w := range s.tables {
		k.cursors = append(k.cursors, areaCursor{cursor: w.order().seek(from), w: w})
	}
	for c := k.best(false); n < most && c != nil; c = k.best(false) {
		c.reads.next(c.w, &c.cursor)
		p.last = *c.item()
		fn(c.entry())
		c.w.arena.at(ref(p.last.ref)).ordinal = p.next
		p.next++
		n++
		c.next()
	}
	return n
}

// Again lets Pass start over in all areas, after the entries could not be written.
func (s *Sealed) Again() { *s.tables[0].passes = [Areas]pass{} }

// Left returns the ordinals of the entries of an area that were removed after they had been
// passed, since the last call.
func (s *Sealed) Left(a Area) []uint32 {
	p := &s.tables[0].passes[a]
	left := p.left
	p.left = nil
	return left
}

// Count is how many entries are left in an area of it.
func (s *Sealed) Count(a Area) (n int64) {
	for _, w := range s.tables {
		n += w.count(a)
	}
	return n
}

func (w *table) count(a Area) (n int64) {
	for p, k := range w.counts {
		if p.area() == a {
			n += k
		}
	}
	return n
}

// Drop gives its memory back, once its entries are found elsewhere.
func (s *Sealed) Drop() {
	s.of.sealed = slices.DeleteFunc(slices.Clone(s.of.sealed), func(w *table) bool { return slices.Contains(s.tables, w) })
	for _, w := range s.tables {
		w.close()
	}
}
