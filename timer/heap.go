package timer

import (
	"iter"
	"time"
)

// Heap is a binary heap of timers, exact to the nanosecond. Starting and
// cancelling cost O(log n), asking for the next is free. Dues and instants lie
// within 146 years of its beginning: what is due later never fires, and its due
// reads as an instant beyond that span; what was due earlier counts as due at
// the first instant of the span.
//
// The heap orders indexes of entries that do not move, so handles and the
// blindness of the collector are those of [Wheel]. An entry takes 48 bytes
// with an 8-byte T, and the room that the heap's slice grows by.
//
// A Heap is not safe for concurrent use; [DelayQueue] is one that is.
type Heap[T any] struct {
	scale
	slab slab[T]
	heap order[T]
}

// NewHeap returns an empty heap. now places its range of dues.
func NewHeap[T any](now time.Time) *Heap[T] {
	h := &Heap[T]{scale: newScale(1, now), slab: newSlab[T]()}
	h.heap.slab = &h.slab
	return h
}

// Len is the number of pending entries.
func (h *Heap[T]) Len() int { return len(h.heap.items) }

// Schedule files v for due and returns its handle. It panics when 2^31 entries
// pend.
func (h *Heap[T]) Schedule(due time.Time, v T) Handle {
	i, e := h.slab.take(h.ceil(due), v)
	h.heap.push(i, e)
	return newHandle(i, e.gen)
}

// Cancel removes an entry and returns its value, or false when the handle is
// stale.
func (h *Heap[T]) Cancel(handle Handle) (T, bool) {
	e := h.slab.find(handle)
	if e == nil {
		var zero T
		return zero, false
	}
	v := e.value
	if e.next != nowhere {
		h.heap.remove(e)
	}
	h.slab.drop(handle.index())
	return v, true
}

// Reset moves an entry to a new due and reports whether the handle is live.
func (h *Heap[T]) Reset(handle Handle, due time.Time) bool {
	e := h.slab.find(handle)
	if e == nil {
		return false
	}
	if e.due = h.ceil(due); e.next == nowhere {
		h.heap.push(handle.index(), e)
	} else {
		h.heap.move(e)
	}
	return true
}

// Due is the due of an entry, or false when the handle is stale.
func (h *Heap[T]) Due(handle Handle) (time.Time, bool) {
	e := h.slab.find(handle)
	if e == nil {
		return time.Time{}, false
	}
	return h.time(e.due), true
}

// Next returns the least due, or false when the heap is empty.
func (h *Heap[T]) Next() (time.Time, bool) {
	if h.Len() == 0 {
		return time.Time{}, false
	}
	return h.time(h.heap.items[0].due), true
}

// Peek returns the entry that is due first and leaves it there, or false when
// the heap is empty.
func (h *Heap[T]) Peek() (t Timer[T], ok bool) {
	if h.Len() == 0 {
		return t, false
	}
	return h.first(), true
}

// Advance yields what is due at now, each with its due, in the order of dues;
// equal ones in the order of scheduling. An entry is removed before it is
// yielded; stopping early leaves the rest for the next call. The heap may be
// used inside the loop; what is scheduled there and is due by now is yielded
// too.
func (h *Heap[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { h.pops(h.floor(now), yield) }
}

// Drain yields everything, due or not, in the manner of Advance.
func (h *Heap[T]) Drain() iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { h.pops(never, yield) }
}

func (h *Heap[T]) pops(limit uint64, yield func(time.Time, T) bool) {
	for h.has(limit) {
		if t := h.pop(); !yield(t.Due, t.Value) {
			return
		}
	}
}

// Poll removes the first of what is due at now, and returns it; false when
// nothing is.
func (h *Heap[T]) Poll(now time.Time) (t Timer[T], ok bool) {
	if !h.has(h.floor(now)) {
		return t, false
	}
	return h.pop(), true
}

func (h *Heap[T]) lend(now time.Time, into []Timer[T]) (n int) {
	for limit := h.floor(now); n < len(into) && h.has(limit); n++ {
		into[n] = h.first()
		h.heap.remove(h.slab.at(into[n].Handle.index()))
	}
	return n
}

func (h *Heap[T]) lent(handle Handle) bool {
	e := h.slab.find(handle)
	return e != nil && e.next == nowhere
}

func (h *Heap[T]) repaid(handle Handle) { h.slab.drop(handle.index()) }

// has says whether anything is due at limit.
func (h *Heap[T]) has(limit uint64) bool {
	return len(h.heap.items) > 0 && h.heap.items[0].due <= limit
}

func (h *Heap[T]) first() Timer[T] {
	item := h.heap.items[0]
	return Timer[T]{newHandle(item.index, item.gen), h.time(item.due), h.slab.at(item.index).value}
}

// pop removes the first entry.
func (h *Heap[T]) pop() Timer[T] {
	t := h.first()
	i := t.Handle.index()
	h.heap.remove(h.slab.at(i))
	h.slab.drop(i)
	return t
}
