package recent

import "math"

// walker goes through an area of all windows at once.
type walker struct {
	r       *Recent
	place   place
	cursors []cursor // of the active window, then of the sealed ones
}

func (r *Recent) windows(fn func(w *window)) {
	fn(r.active)
	for _, s := range r.sealed {
		fn(s.w)
	}
}

// best returns the cursor whose item comes first, or last; nil: there is none left.
func (k *walker) best(last bool) (c *cursor, window int) {
	for i := range k.cursors {
		it := k.cursors[i].item()
		if it == nil || it.hi != uint32(k.place) {
			continue
		}
		if c == nil || it.less(c.item()) != last {
			c, window = &k.cursors[i], i
		}
	}
	return c, window
}

func (k *walker) entry(c *cursor, window int) Entry {
	at := ref(c.item().ref)
	if window == 0 {
		return k.r.active.entry(at, k.r.active.arena.at(at))
	}
	s := k.r.sealed[window-1]
	return s.entry(at, s.w.arena.at(at))
}

// Ascend gives fn the entries of an area of a queue in order, from a position on, until fn
// returns false. fn must not change anything.
func (r *Recent) Ascend(queue uint32, a Area, from Position, fn func(Entry) bool) {
	var room [4]cursor
	k := walker{r: r, place: placeOf(queue, a), cursors: room[:0]}
	first := item{hi: uint32(k.place), at: from.At, id: from.ID}
	r.windows(func(w *window) { k.cursors = append(k.cursors, w.order.seek(first)) })
	for c, w := k.best(false); c != nil && fn(k.entry(c, w)); c, w = k.best(false) {
		c.next()
	}
}

// Descend gives fn the entries of an area of a queue that lie before a position, the last
// first, until fn returns false. fn must not change anything.
func (r *Recent) Descend(queue uint32, a Area, before Position, fn func(Entry) bool) {
	var room [4]cursor
	k := walker{r: r, place: placeOf(queue, a), cursors: room[:0]}
	end := item{hi: uint32(k.place), at: before.At, id: before.ID}
	r.windows(func(w *window) { k.cursors = append(k.cursors, w.order.before(end)) })
	for c, w := k.best(true); c != nil && fn(k.entry(c, w)); c, w = k.best(true) {
		c.prev()
	}
}

// CountRange is how many entries of an area of a queue lie from a position on and before another:
// none where that is not after it. It takes as long as finding two entries in each window, however
// many lie between.
func (r *Recent) CountRange(queue uint32, a Area, from, to Position) (n int64) {
	p := uint32(placeOf(queue, a))
	first, end := item{hi: p, at: from.At, id: from.ID}, item{hi: p, at: to.At, id: to.ID}
	if !first.less(&end) {
		return 0
	}
	r.windows(func(w *window) { n += w.order.rank(&end) - w.order.rank(&first) })
	return n
}

// The ends of an area.
var (
	First = Position{At: math.MinInt64}
	Last  = Position{At: math.MaxInt64, ID: math.MaxUint64}
)

// Places gives fn each area of each queue that has entries, in no order, and how many.
func (r *Recent) Places(fn func(queue uint32, a Area, n int64)) {
	sums := make(map[place]int64)
	r.windows(func(w *window) {
		for p, n := range w.counts {
			sums[p] += n
		}
	})
	for p, n := range sums {
		fn(p.queue(), p.area(), n)
	}
}
