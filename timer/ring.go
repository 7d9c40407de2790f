package timer

import (
	"iter"
	"math"
	"time"
)

// Ring is the ring queue: an array of slots, a hand that moves one slot each
// tick, and in each slot a set of tasks, each with a cycle number. When the hand
// reaches a slot, the tasks with cycle number zero fire, and the cycle numbers of
// the others go down by one.
//
//	          hand
//	           v
//	[0] [1] [2] [3] ··· [3599]
//	     |   |
//	     |   task, cycle 0: fires now
//	     |   task, cycle 1: next time round
//	     task, cycle 0
//
// With the hand at 1, a task for 3610 ticks later is in slot 11 with cycle 1. One
// for exactly a full turn is in the hand's own slot with cycle 0, as the hand
// gets there again after one turn.
//
// Starting, cancelling and resetting are O(1), except for the n entries behind
// the hand, where they are O(log n). Those are the due ones that were not taken
// yet, and all new ones while the clock is behind an instant that the ring was
// given before. A tick looks at every task of its slot, even those of later
// turns: with n tasks in N slots that is n/N for each tick. Take [Wheel] when
// tasks are many and far away.
//
// A Ring is not safe for concurrent use.
type Ring[T any] struct {
	scale
	slab  slab[task[T]]
	heads []links  // by slot
	some  []uint64 // a bit a slot: may hold something; cleared late
	hand  int64    // ticks since the origin

	lentOut int // lent entries: their prev is inLate and their next is nowhere
	// late has the entries behind the hand: those that it found due, and those
	// scheduled behind it. Their prev is inLate.
	late order[task[T]]
}

const inLate = 1<<32 - 1

type task[T any] struct {
	value T
	cycle int64 // turns to go after this one
}

// RingSlots and RingTick are the defaults of a Ring: an hour of seconds.
const (
	RingSlots = 3600
	RingTick  = time.Second
)

// NewRing returns an empty ring with the hand at now. Zero slots mean RingSlots,
// and a zero tick means RingTick; NewRing panics when one is negative.
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
		slab:  newSlab[task[T]](),
		heads: make([]links, slots),
		some:  make([]uint64, (slots+63)/64),
	}
	for i := range r.heads {
		self := headBit | uint32(i)
		r.heads[i] = links{self, self}
	}
	r.late.slab = &r.slab
	return r
}

// Len returns the number of pending entries.
func (r *Ring[T]) Len() int { return r.slab.len - r.lentOut }

// Index returns the slot that the hand is in.
func (r *Ring[T]) Index() int { return r.slotOf(r.hand) }

// Where returns the slot and the cycle number of an entry. It returns false when
// the handle is stale, or when the entry is behind the hand and waits for the
// next Advance.
func (r *Ring[T]) Where(h Handle) (slot int, cycle int64, ok bool) {
	e := r.slab.find(h)
	if e == nil || e.prev == inLate {
		return 0, 0, false
	}
	return r.slotOf(r.tickOf(e.due)), r.turns(r.tickOf(e.due)), true
}

// Schedule adds v, to be yielded at due or later, and returns its handle. An
// entry fires at the first whole tick at or after its due time. If the hand has
// passed that tick, it fires at the first Advance at or after the tick. Schedule
// panics when 2^31 entries are pending.
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
	r.remove(h)
	return v, true
}

// Reset moves an entry to a new due time, and reports whether the handle is live.
// Moving it to a later time is cheapest: the entry stays in its slot until the
// hand gets there.
func (r *Ring[T]) Reset(h Handle, due time.Time) bool {
	e := r.slab.find(h)
	if e == nil {
		return false
	}
	k := r.ceil(due)
	if k >= e.due && e.prev != inLate {
		e.due = k
		return true
	}
	r.unlink(e)
	e.due = k
	r.file(h.index(), e)
	return true
}

// Due returns the due time of an entry, or false when the handle is stale.
func (r *Ring[T]) Due(h Handle) (time.Time, bool) {
	e := r.slab.find(h)
	if e == nil {
		return time.Time{}, false
	}
	return r.time(e.due), true
}

// Next returns the next tick for which the hand has to move: that of the first
// slot with a task in it, whatever its cycle number. False when nothing is
// pending.
func (r *Ring[T]) Next() (time.Time, bool) {
	if r.Len() == 0 {
		return time.Time{}, false
	}
	best := int64(math.MaxInt64)
	if len(r.late.items) > 0 {
		best = r.tickOf(r.late.items[0].due)
	}
	n := int64(len(r.heads))
	for passed := int64(1); passed <= n && r.hand+passed < best; passed++ {
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
		best = r.hand + passed
		break
	}
	return r.time(r.dueOf(best)), true
}

// Advance moves the hand to now and yields the due entries, with their due times,
// in the order of due times, and then of scheduling. An entry is removed before
// it is yielded. Stopping early leaves the rest for the next call. A now behind
// the hand does not move it. The loop may use the ring: entries that it schedules
// and that are due by now are yielded too.
func (r *Ring[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		for {
			t, ok := r.Poll(now)
			if !ok || !yield(t.Due, t.Value) {
				return
			}
		}
	}
}

// Drain yields all entries, due or not, in the same way as Advance, but leaves
// the hand where it is.
func (r *Ring[T]) Drain() iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		for r.Len() > 0 {
			if len(r.late.items) < r.Len() {
				r.gather()
			}
			t := r.first()
			r.remove(t.Handle)
			if !yield(t.Due, t.Value) {
				return
			}
		}
	}
}

// gather moves all entries to late.
func (r *Ring[T]) gather() {
	for slot := range r.heads {
		for i := r.heads[slot].next; i&headBit == 0; i = r.heads[slot].next {
			e := r.slab.at(i)
			r.unlink(e)
			r.delay(i, e)
		}
	}
}

// Poll moves the hand to now, and removes and returns the first due entry; false
// when there is none.
func (r *Ring[T]) Poll(now time.Time) (t Timer[T], ok bool) {
	if !r.has(now) {
		return t, false
	}
	t = r.first()
	r.remove(t.Handle)
	return t, true
}

func (r *Ring[T]) lend(now time.Time, into []Timer[T]) (n int) {
	for ; n < len(into) && r.has(now); n++ {
		into[n] = r.first()
		r.late.remove(r.slab.at(into[n].Handle.index()))
		r.lentOut++
	}
	return n
}

func (r *Ring[T]) lent(h Handle) bool {
	e := r.slab.find(h)
	return e != nil && e.prev == inLate && e.next == nowhere
}

func (r *Ring[T]) repaid(h Handle) { r.remove(h) }

// has moves the hand to now and reports whether anything is due then.
func (r *Ring[T]) has(now time.Time) bool {
	limit := r.floor(now)
	if tick := r.tickOf(limit); tick > r.hand {
		r.turn(tick)
	}
	return len(r.late.items) > 0 && r.late.items[0].due <= limit
}

// first returns the first entry of late.
func (r *Ring[T]) first() Timer[T] {
	item := r.late.items[0]
	return Timer[T]{newHandle(item.index, item.gen), r.time(item.due), r.slab.at(item.index).value.value}
}

// remove removes the entry of a live handle.
func (r *Ring[T]) remove(h Handle) {
	r.unlink(r.slab.at(h.index()))
	r.slab.drop(h.index())
}

// turn moves the hand, and moves the entries that it finds due to late. A slot
// that the hand passes several times is looked at once, and its cycle numbers go
// down by as many turns.
func (r *Ring[T]) turn(to int64) {
	from, n := r.hand, int64(len(r.heads))
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
				// Due, or reset to later meanwhile; file finds out.
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

// file puts an entry into its slot, or into late.
func (r *Ring[T]) file(i uint32, e *entry[task[T]]) {
	tick := r.tickOf(e.due)
	if tick <= r.hand {
		r.delay(i, e)
		return
	}
	slot := r.slotOf(tick)
	e.value.cycle = r.turns(tick)
	r.some[slot/64] |= 1 << (slot % 64)
	r.push(slot, i, e)
}

// delay puts an entry into late.
func (r *Ring[T]) delay(i uint32, e *entry[task[T]]) {
	e.prev = inLate
	r.late.push(i, e)
}

// turns returns the cycle number for a tick after the hand's. After exactly one
// turn the hand is in its own slot again, so the number for that is 0, not 1.
func (r *Ring[T]) turns(tick int64) int64 { return (tick - r.hand - 1) / int64(len(r.heads)) }

func (r *Ring[T]) slotOf(tick int64) int {
	n := int64(len(r.heads))
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
	if e.prev == inLate {
		if e.next == nowhere {
			r.lentOut--
		} else {
			r.late.remove(e)
		}
		return
	}
	r.link(e.prev).next = e.next
	r.link(e.next).prev = e.prev
}

func (r *Ring[T]) push(slot int, i uint32, e *entry[task[T]]) {
	self, last := headBit|uint32(slot), r.heads[slot].prev
	e.next, e.prev = self, last
	r.heads[slot].prev = i
	r.link(last).next = i
}
