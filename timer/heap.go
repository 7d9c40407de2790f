package timer

import (
	"iter"
	"time"
)

// Heap is a binary heap of timers, exact to the nanosecond. Starting and
// cancelling cost O(log n), and asking for the next is free. Due times are
// within 146 years of the now given to NewHeap. An entry that is due later never
// fires, and [Heap.Due] returns an instant beyond that span. One that was due
// earlier counts as due at the first instant of the span.
//
// The heap orders indexes of entries that do not move. So its handles are like
// those of [Wheel], and as there the garbage collector does not look at entries
// with a T free of pointers. An entry takes 48 bytes with an 8-byte T, and its
// part of the spare capacity of the heap's slice.
//
// A Heap is not safe for concurrent use; [DelayQueue] is one that is.
type Heap[T any] struct {
	scale
	slab slab[T]
	heap order[T]
}

// NewHeap returns an empty heap. now is the middle of its range of due times.
func NewHeap[T any](now time.Time) *Heap[T] {
	h := &Heap[T]{scale: newScale(1, now), slab: newSlab[T]()}
	h.heap.slab = &h.slab
	return h
}

// Len returns the number of pending entries.
func (h *Heap[T]) Len() int { return len(h.heap.items) }

// Schedule adds v, to be yielded at due or later, and returns its handle. It
// panics when 2^31 entries are pending.
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

// Reset moves an entry to a new due time, and reports whether the handle is live.
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

// Due returns the due time of an entry, or false when the handle is stale.
func (h *Heap[T]) Due(handle Handle) (time.Time, bool) {
	e := h.slab.find(handle)
	if e == nil {
		return time.Time{}, false
	}
	return h.time(e.due), true
}

// Next returns the earliest due time, or false when the heap is empty.
func (h *Heap[T]) Next() (time.Time, bool) {
	if h.Len() == 0 {
		return time.Time{}, false
	}
	return h.time(h.heap.items[0].due), true
}

// Peek returns the entry that is due first without removing it, or false when
// the heap is empty.
func (h *Heap[T]) Peek() (t Timer[T], ok bool) {
	if h.Len() == 0 {
		return t, false
	}
	return h.first(), true
}

// Advance yields the entries that are due at now, with their due times, in the
// order of due times, and then of scheduling. An entry is removed before it is
// yielded. Stopping early leaves the rest for the next call. The loop may use the
// heap: entries that it schedules and that are due by now are yielded too.
func (h *Heap[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { h.pops(h.floor(now), yield) }
}

// Drain yields all entries, due or not, in the same way as Advance.
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

// Poll removes and returns the first entry that is due at now; false when there
// is none.
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

// has reports whether anything is due at limit.
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
