package timer

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"
)

// Ring is the ring queue: an array of slots, a hand that moves one slot a
// tick, and in each slot a set of tasks, each with a cycle number. The hand
// counts the cycle numbers of the slot it reaches down by one, and what stands
// at zero fires.
//
//	          hand
//	           v
//	[0] [1] [2] [3] ··· [3599]
//	     |   |
//	     |   task, cycle 0: fires now
//	     |   task, cycle 1: next time round
//	     task, cycle 0
//
// With a hand at 1 a task for 3610 ticks later stands in slot 11 with cycle 1.
// One for exactly a full turn stands in the hand's own slot with cycle 0, as
// the hand gets there again after one turn.
//
// Starting, cancelling and winding back are O(1). A tick costs a look at every
// task of its slot, also at those of later turns: with n tasks in N slots that
// is n/N a tick. Take [Wheel] when tasks are many and far away.
//
// A Ring is not safe for concurrent use.
type Ring[T any] struct {
	scale
	slab  slab[task[T]]
	heads []links  // by slot, and one more for what is late
	some  []uint64 // a bit a slot: may hold something; cleared late
	hand  int64    // ticks since the origin
	mixed bool     // the late ones are out of order
}

type task[T any] struct {
	value T
	cycle int64 // turns to go after this one
}

// RingSlots and RingTick are what a Ring has by default: an hour of seconds.
const (
	RingSlots = 3600
	RingTick  = time.Second
)

// NewRing returns an empty ring whose hand stands at now. Zero slots means
// RingSlots, a zero tick RingTick; NewRing panics when one is negative.
func NewRing[T any](slots int, tick time.Duration, now time.Time) *Ring[T] {
	if slots < 0 {
		panic("timer: the number of slots must be positive")
	}
	if slots == 0 {
		slots = RingSlots
	}
	if tick == 0 {
		tick = RingTick
	}
	r := &Ring[T]{
		scale: newScale(tick, now),
		heads: make([]links, slots+1),
		some:  make([]uint64, (slots+63)/64),
	}
	for i := range r.heads {
		self := headBit | uint32(i)
		r.heads[i] = links{self, self}
	}
	return r
}

// Len is the number of pending entries.
func (r *Ring[T]) Len() int { return r.slab.len }

// Index is the slot that the hand stands in.
func (r *Ring[T]) Index() int { return r.slotOf(r.hand) }

// Where tells the slot and the cycle number of an entry, or false when the
// handle is stale or the entry waits, overdue, for the next Advance.
func (r *Ring[T]) Where(h Handle) (slot int, cycle int64, ok bool) {
	e := r.slab.find(h)
	if e == nil || r.tickOf(e.due) <= r.hand {
		return 0, 0, false
	}
	return r.slotOf(r.tickOf(e.due)), r.turns(r.tickOf(e.due)), true
}

// Schedule files v for due and returns its handle. A due that the hand has
// passed fires on the next Advance to or beyond it.
func (r *Ring[T]) Schedule(due time.Time, v T) Handle {
	i, e := r.slab.take(r.ceil(due), task[T]{value: v})
	r.file(i, e)
	return newHandle(i, e.gen)
}

// Cancel removes an entry and returns its value, or false when the handle is
// stale.
func (r *Ring[T]) Cancel(h Handle) (T, bool) {
	e := r.slab.find(h)
	if e == nil {
		var zero T
		return zero, false
	}
	v := e.value.value
	r.unlink(e)
	r.slab.drop(h.index())
	return v, true
}

// Reset moves an entry to a new due and reports whether the handle is live.
// Later than before is cheapest: the entry stays in its slot until the hand
// comes by.
func (r *Ring[T]) Reset(h Handle, due time.Time) bool {
	e := r.slab.find(h)
	if e == nil {
		return false
	}
	k := r.ceil(due)
	if k >= e.due && r.tickOf(e.due) > r.hand {
		e.due = k
		return true
	}
	r.unlink(e)
	e.due = k
	r.file(h.index(), e)
	return true
}

// Next returns the next tick for which the hand has to move: that of the first
// slot with a task in it, whatever its cycle number. False when nothing pends.
func (r *Ring[T]) Next() (time.Time, bool) {
	if r.slab.len == 0 {
		return time.Time{}, false
	}
	best := int64(math.MaxInt64)
	if r.sortLate(); !r.isEmpty(r.late()) {
		best = r.tickOf(r.slab.at(r.heads[r.late()].next).due)
	}
	n := int64(r.late())
	for passed := int64(1); passed <= n; passed++ {
		slot := r.slotOf(r.hand + passed)
		word := r.some[slot/64] >> (slot % 64)
		if word == 0 {
			passed += min(int64(63-slot%64), n-1-int64(slot)) // to the end of the word
			continue
		}
		if word&1 == 0 {
			continue
		}
		if r.isEmpty(slot) {
			r.some[slot/64] &^= 1 << (slot % 64)
			continue
		}
		best = min(best, r.hand+passed)
		break
	}
	return r.time(r.dueOf(best)), true
}

// Advance moves the hand to now and yields what has come due, each with its
// due, in the order of dues. An entry is removed before it is yielded. Stopping
// early leaves the rest for the next call; a now behind the hand does not move
// it. The ring may be used inside the loop.
func (r *Ring[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		for {
			due, v, ok := r.Poll(now)
			if !ok || !yield(due, v) {
				return
			}
		}
	}
}

// Poll removes the first of what is due at now, and returns it with its due;
// false when nothing is.
func (r *Ring[T]) Poll(now time.Time) (due time.Time, v T, ok bool) {
	limit := r.floor(now)
	if tick := r.tickOf(limit); tick > r.hand {
		r.turn(tick)
	}
	r.sortLate()
	i := r.heads[r.late()].next
	if i&headBit != 0 {
		return due, v, false
	}
	e := r.slab.at(i)
	if e.due > limit {
		return due, v, false
	}
	due, v = r.time(e.due), e.value.value
	r.unlink(e)
	r.slab.drop(i)
	return due, v, true
}

// turn moves the hand and gathers what it finds due. A slot that the hand
// passes several times is looked at once, with as many turns taken off.
func (r *Ring[T]) turn(to int64) {
	from, n := r.hand, int64(r.late())
	r.hand = to
	for passed := int64(1); passed <= min(to-from, n); passed++ {
		slot := r.slotOf(from + passed)
		if r.some[slot/64]>>(slot%64)&1 == 0 {
			continue
		}
		times := 1 + (to-from-passed)/n
		list, self := r.heads[slot], headBit|uint32(slot)
		r.heads[slot] = links{self, self}
		r.some[slot/64] &^= 1 << (slot % 64)
		for i := list.next; i != self; {
			e := r.slab.at(i)
			next := e.next
			if e.value.cycle < times {
				// Due, or reset to later meanwhile: file knows.
				r.file(i, e)
			} else {
				e.value.cycle -= times
				r.some[slot/64] |= 1 << (slot % 64)
				r.push(slot, i, e)
			}
			i = next
		}
	}
}

// file puts an entry into its slot, or to the late ones.
func (r *Ring[T]) file(i uint32, e *entry[task[T]]) {
	slot, tick := r.late(), r.tickOf(e.due)
	if tick > r.hand {
		slot = r.slotOf(tick)
		e.value.cycle = r.turns(tick)
		r.some[slot/64] |= 1 << (slot % 64)
	} else if last := r.heads[slot].prev; last&headBit == 0 && r.slab.at(last).due > e.due {
		r.mixed = true
	}
	r.push(slot, i, e)
}

// sortLate puts the late ones in order, if they are not.
func (r *Ring[T]) sortLate() {
	if !r.mixed {
		return
	}
	r.mixed = false
	var list []uint32
	late := r.late()
	for i := r.heads[late].next; i&headBit == 0; i = r.slab.at(i).next {
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(r.slab.at(a).due, r.slab.at(b).due) })
	self := headBit | uint32(late)
	r.heads[late] = links{self, self}
	for _, i := range list {
		r.push(late, i, r.slab.at(i))
	}
}

// turns is the cycle number for a tick after the hand's. A whole number of
// turns ends in the hand's own slot, which is reached once on the way.
func (r *Ring[T]) turns(tick int64) int64 { return (tick - r.hand - 1) / int64(r.late()) }

// late is the number of the list of what the hand has passed: one beyond the
// slots.
func (r *Ring[T]) late() int { return len(r.heads) - 1 }

func (r *Ring[T]) slotOf(tick int64) int {
	n := int64(r.late())
	return int((tick%n + n) % n)
}

func (r *Ring[T]) tickOf(due uint64) int64 { return -floorDiv(-int64(due-middle), r.tick) }
func (r *Ring[T]) dueOf(tick int64) uint64 {
	if tick > reach/r.tick {
		return never
	}
	return uint64(tick*r.tick) + middle
}

func (r *Ring[T]) isEmpty(slot int) bool { return r.heads[slot].next&headBit != 0 }

func (r *Ring[T]) link(i uint32) *links {
	if i&headBit != 0 {
		return &r.heads[i&^headBit]
	}
	return &r.slab.at(i).links
}

func (r *Ring[T]) unlink(e *entry[task[T]]) {
	r.link(e.prev).next = e.next
	r.link(e.next).prev = e.prev
}

func (r *Ring[T]) push(slot int, i uint32, e *entry[task[T]]) {
	self, last := headBit|uint32(slot), r.heads[slot].prev
	e.next, e.prev = self, last
	r.heads[slot].prev = i
	r.link(last).next = i
}
