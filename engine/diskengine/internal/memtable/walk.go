package memtable

import "math"

// walker walks through an area of some memtables at once.
type walker struct {
	place   place
	mask    place // of an entry's place, those bits that must be as in place
	cursors []areaCursor
}

// areaCursor is a place in the order of a memtable.
type areaCursor struct {
	cursor
	w     *table
	reads prefetcher
}

func (r *Tables) each(fn func(w *table)) {
	fn(r.active)
	for _, w := range r.sealed {
		fn(w)
	}
}

// cursors appends a cursor for each memtable, from seek.
func (r *Tables) cursors(c []areaCursor, seek func(*order) cursor) []areaCursor {
	r.each(func(w *table) { c = append(c, areaCursor{cursor: seek(w.order()), w: w}) })
	return c
}

// best returns the cursor at the item that comes first, or last; nil: there is none left.
func (k *walker) best(last bool) (best *areaCursor) {
	for i := range k.cursors {
		c := &k.cursors[i]
		it := c.item()
		if it == nil || place(it.hi)&k.mask != k.place {
			continue
		}
		if best == nil || it.less(best.item()) != last {
			best = c
		}
	}
	return best
}

func (c *areaCursor) entry() Entry {
	r := ref(c.item().ref)
	return c.w.entry(r, c.w.arena.at(r))
}

// Ascend gives fn the entries of an area of a queue in order, from a position on, until fn
// returns false. fn must not change anything.
func (r *Tables) Ascend(queue uint32, a Area, from Position, fn func(Entry) bool) {
	var room [4]areaCursor
	p := placeOf(queue, a)
	first := item{hi: uint32(p), at: from.At, id: from.ID}
	k := walker{p, allOf, r.cursors(room[:0], func(o *order) cursor { return o.seek(first) })}
	for c := k.best(false); c != nil; c = k.best(false) {
		c.reads.next(c.w, &c.cursor)
		if !fn(c.entry()) {
			return
		}
		c.next()
	}
}

// Descend gives fn the entries of an area of a queue that are before a position, the last
// first, until fn returns false. fn must not change anything.
func (r *Tables) Descend(queue uint32, a Area, before Position, fn func(Entry) bool) {
	var room [4]areaCursor
	p := placeOf(queue, a)
	end := item{hi: uint32(p), at: before.At, id: before.ID}
	k := walker{p, allOf, r.cursors(room[:0], func(o *order) cursor { return o.before(end) })}
	for c := k.best(true); c != nil && fn(c.entry()); c = k.best(true) {
		c.prev()
	}
}

// CountRange is how many entries of an area of a queue are at or after from and before to; 0
// if to is not after from. It takes as long as finding two entries in each memtable, however
// many are between.
func (r *Tables) CountRange(queue uint32, a Area, from, to Position) (n int64) {
	p := uint32(placeOf(queue, a))
	first, end := item{hi: p, at: from.At, id: from.ID}, item{hi: p, at: to.At, id: to.ID}
	if !first.less(&end) {
		return 0
	}
	r.each(func(w *table) { n += w.order().rank(&end) - w.order().rank(&first) })
	return n
}

// First is the first position of an area.
var First = Position{At: math.MinInt64}

// Places gives fn each area of each queue that has entries, and how many, in no order.
func (r *Tables) Places(fn func(queue uint32, a Area, n int64)) {
	sums := make(map[place]int64)
	r.each(func(w *table) {
		for p, n := range w.counts {
			sums[p] += n
		}
	})
	for p, n := range sums {
		fn(p.queue(), p.area(), n)
	}
}
