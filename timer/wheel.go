package timer

import (
	"iter"
	"math/bits"
	"time"
)

// Wheel is a hierarchical timing wheel. Starting, cancelling and resetting a
// timer cost the same however many are pending. Resetting it to a later time
// ([Wheel.Reset]) touches nothing but its entry.
//
// The levels are digits of the due time in base 64. An entry is filed under the
// most significant digit only, as long as that slot holds few entries or is far
// from the front. A slot that comes to the front, or overflows, gets a finer
// wheel of its own, and its entries are dealt out by the next digit. So there is
// no clockwork: no tick is needed when nothing is due, and jumps of the clock
// cost nothing. An entry that is due in the past is filed like any other, and
// [Wheel.Next] is exact.
//
//	level 2   [0][1][2]·[4]···            4096 units a slot
//	                |
//	level 1        [0]··[3]···[63]          64 units a slot
//	                      |
//	level 0              [0][1]·····         1 unit a slot: one due time
//
// Memory: an entry takes 32 bytes with an 8-byte T, and 24 with a 4-byte one.
// With many entries, the wheels take under one more byte for each. An empty
// Wheel takes under 1 KB, and a drained one frees what it had. With a T free of
// pointers the garbage collector does not look at the entries.
//
// Allocation: none in steady state; chunks of 16 entries as the number grows.
//
// A Wheel is not safe for concurrent use.
type Wheel[T any] struct {
	scale
	slab  slab[T]
	nodes nodes
	root  *node

	lentOut int // lent entries: each is in a list of its own, with away as its due time
	limits  limits
	sweep   int // how many nodes must be in use before empty ones are looked for

	// fresh is the list of the entries scheduled last, which are not filed yet:
	// most timeouts are cancelled soon, and filing is the costly part when many
	// entries are pending. young is how many they are, including those cancelled
	// since the last count.
	fresh links
	young int

	// While known, least is the entry that is due first, and leastDue its due time.
	known    bool
	least    uint32
	leastDue uint64
}

// NewWheel returns an empty wheel. It keeps due times to the microsecond (to the
// nanosecond when tick is not a whole number of microseconds). An entry fires at
// the first whole tick at or after its due time; ticks count from the zero time.
// With a coarse tick, entries that are due close together fire together. A tick
// is typically a millisecond; NewWheel panics when it is not positive. now is
// only the middle of the range of due times, 146,000 years either way (146 with
// nanoseconds). An entry that is due later never fires, and one that was due
// earlier counts as due at the first instant of the range.
func NewWheel[T any](tick time.Duration, now time.Time) *Wheel[T] {
	return &Wheel[T]{scale: newScale(tick, now), slab: newSlab[T](), limits: usual, sweep: usual.sweep, fresh: links{freshHead, freshHead}}
}

// Len returns the number of pending entries.
func (w *Wheel[T]) Len() int { return w.slab.len - w.lentOut }

// Schedule adds v, to be yielded at due or later, and returns its handle. Even an
// entry that is already due fires at the first whole tick at or after its due
// time, so it may have to wait for the next tick. Schedule panics when 2^31
// entries are pending.
func (w *Wheel[T]) Schedule(due time.Time, v T) Handle {
	k := w.ceil(due)
	i, e := w.slab.take(k, v)
	if w.young == w.limits.young {
		w.grownUp()
	}
	w.young++
	last := w.fresh.prev
	e.next, e.prev = freshHead, last
	w.fresh.prev = i
	w.link(last).next = i
	if w.known && k < w.leastDue || w.Len() == 1 {
		w.known, w.least, w.leastDue = true, i, k
	}
	return newHandle(i, e.gen)
}

// Cancel removes an entry and returns its value, or false when the handle is
// stale.
func (w *Wheel[T]) Cancel(h Handle) (T, bool) {
	e := w.slab.find(h)
	if e == nil {
		var zero T
		return zero, false
	}
	v := e.value
	w.remove(h.index(), e)
	return v, true
}

// Reset moves an entry to a new due time, and reports whether the handle is live.
// Moving it to a later time, as heartbeats do, is cheapest: the entry stays filed
// where it is, and is filed anew when that place comes up.
func (w *Wheel[T]) Reset(h Handle, due time.Time) bool {
	e := w.slab.find(h)
	if e == nil {
		return false
	}
	k, i := w.ceil(due), h.index()
	if k >= e.due {
		e.due = k
		if w.least == i {
			w.known = false
		}
		return true
	}
	if e.due == away {
		w.lentOut--
	}
	w.unlink(e)
	e.due = k
	w.file(i, e)
	w.tidy()
	if w.known && (k < w.leastDue || w.least == i) {
		w.least, w.leastDue = i, k
	}
	return true
}

// Due returns the due time of an entry, or false when the handle is stale.
func (w *Wheel[T]) Due(h Handle) (time.Time, bool) {
	e := w.slab.find(h)
	if e == nil {
		return time.Time{}, false
	}
	return w.time(e.due), true
}

// Next returns the first tick at which something is due, or false when the
// wheel is empty. It costs nothing while the first entry stays the same.
func (w *Wheel[T]) Next() (time.Time, bool) {
	if !w.find() {
		return time.Time{}, false
	}
	return w.time(w.up(w.leastDue)), true
}

// Peek returns the entry that is due first without removing it, or false when
// the wheel is empty.
func (w *Wheel[T]) Peek() (t Timer[T], ok bool) {
	if !w.find() {
		return t, false
	}
	return w.first(), true
}

// Advance yields the entries that are due at now, with their due times, in the
// order of due times, and then usually of scheduling. An entry is removed before
// it is yielded. Stopping early leaves the rest for the next call. now may be
// before that of an earlier call; entries that are due after it are not yielded.
//
// The loop may use the wheel. Entries that it schedules and that are due by now
// are yielded too, so a loop that schedules entries again must choose a later due
// time.
func (w *Wheel[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { w.pops(w.floor(now), yield) }
}

// Drain yields all entries, due or not, in the same way as Advance.
func (w *Wheel[T]) Drain() iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { w.pops(never, yield) }
}

func (w *Wheel[T]) pops(limit uint64, yield func(time.Time, T) bool) {
	for w.find() && w.leastDue <= limit {
		e := w.slab.at(w.least)
		due, v := e.due, e.value
		w.remove(w.least, e)
		if !yield(w.time(due), v) {
			return
		}
	}
}

// Poll removes and returns the first entry that is due at now; false when there
// is none.
func (w *Wheel[T]) Poll(now time.Time) (t Timer[T], ok bool) {
	if !w.find() || w.leastDue > w.floor(now) {
		return t, false
	}
	t = w.first()
	w.remove(w.least, w.slab.at(w.least))
	return t, true
}

func (w *Wheel[T]) lend(now time.Time, into []Timer[T]) (n int) {
	var due time.Time
	var of uint64 // which due is the time of
	for limit := w.floor(now); n < len(into) && w.find() && w.leastDue <= limit; n++ {
		i := w.least
		e := w.slab.at(i)
		if n == 0 || e.due != of {
			due, of = w.time(e.due), e.due
		}
		into[n] = Timer[T]{newHandle(i, e.gen), due, e.value}
		w.takeOut(i, e)
		e.next, e.prev, e.due = i, i, away
		w.lentOut++
	}
	return n
}

func (w *Wheel[T]) lent(h Handle) bool {
	e := w.slab.find(h)
	return e != nil && e.due == away
}

func (w *Wheel[T]) repaid(h Handle) {
	w.lentOut--
	w.free(h.index())
}

// first is the least entry, which is known.
func (w *Wheel[T]) first() Timer[T] {
	e := w.slab.at(w.least)
	return Timer[T]{newHandle(w.least, e.gen), w.time(e.due), e.value}
}

// remove takes an entry in use out of its list and frees it.
func (w *Wheel[T]) remove(i uint32, e *entry[T]) {
	if e.due == away {
		w.lentOut--
	}
	w.takeOut(i, e)
	w.free(i)
}

// free frees an entry that is in no list.
func (w *Wheel[T]) free(i uint32) {
	w.slab.drop(i)
	if w.slab.len == 0 {
		w.clear()
	}
}

// takeOut takes an entry out of its list.
func (w *Wheel[T]) takeOut(i uint32, e *entry[T]) {
	w.unlink(e)
	if w.least == i && w.known {
		// A neighbour with the same due time can be the first as well.
		w.known = false
		if e.next&headBit == 0 && w.slab.at(e.next).due == w.leastDue {
			w.known, w.least = true, e.next
		}
	}
}

// clear drops all wheels, which are empty, except a lone root.
func (w *Wheel[T]) clear() {
	w.known, w.young = false, 0
	switch {
	case w.nodes.live() > 1:
		w.nodes, w.root, w.sweep = nodes{}, nil, w.limits.sweep
	case w.root != nil:
		w.root.some = 0
	}
}

// find finds the entry that is due first, or returns false when none is pending.
func (w *Wheel[T]) find() bool {
	if w.known {
		return true
	}
	if w.Len() == 0 {
		return false
	}
	w.settle()
	var path [topLevel + 1]*node
	depth := 0
	root := w.root
	n := root
	for {
		if w.root != root {
			// Scanning filed an entry anew that the old root did not cover.
			root = w.root
			n, depth = root, 0
		}
		if n.some == 0 {
			// Empty. It is never the root, as something is pending.
			up := path[depth-1]
			depth--
			w.fold(up, up.slot(n.first))
			n = up
			continue
		}
		slot := uint32(bits.TrailingZeros64(n.some))
		if n.kids>>slot&1 != 0 {
			path[depth] = n
			depth++
			n = w.nodes.all[n.heads[slot].next]
			continue
		}
		switch w.scan(n, slot) {
		case scanFound:
			w.known = true
			return true
		case scanEmpty:
			n.some &^= 1 << slot
		case scanMany:
			w.deal(n, slot)
		}
	}
}

type scanned int

const (
	scanFound scanned = iota
	scanEmpty
	scanMany // too many to look at: deal them out
)

// scan looks for the earliest entry of a slot at the front. On the way it files
// anew the entries that were reset to a time after the slot's end.
func (w *Wheel[T]) scan(n *node, slot uint32) scanned {
	end, head := n.end(slot), n.head(slot)
	found, seen := scanEmpty, 0
	for i := n.heads[slot].next; i != head; {
		e := w.slab.at(i)
		next := e.next
		switch {
		case e.due > end:
			w.unlink(e)
			w.file(i, e)
		case n.level == 0:
			w.least, w.leastDue = i, e.due
			return scanFound
		case seen == w.limits.coarse:
			return scanMany
		default:
			if found == scanEmpty || e.due < w.leastDue {
				w.least, w.leastDue = i, e.due
			}
			found = scanFound
			seen++
		}
		i = next
	}
	return found
}
