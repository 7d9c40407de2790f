package timer

import (
	"iter"
	"time"
)

// Heap is a binary heap of timers, exact to the nanosecond. Starting and
// cancelling cost O(log n), asking for the next is free. Dues lie within 146
// years of its beginning; what is due beyond never fires.
//
// The heap orders indexes of entries that do not move, so handles and the
// blindness of the collector are those of [Wheel]. An entry takes 48 bytes
// with an 8-byte T, and the room that the heap's slice grows by.
//
// A Heap is not safe for concurrent use; [DelayQueue] is one that is.
type Heap[T any] struct {
	scale
	slab slab[T]
	heap []heapItem // entry.next is the place in here
}

// heapItem carries the due too: comparing does not leave the slice.
type heapItem struct {
	due   uint64
	index uint32
	gen   uint32 // equal dues fire in the order of scheduling
}

// NewHeap returns an empty heap. now places its range of dues.
func NewHeap[T any](now time.Time) *Heap[T] {
	return &Heap[T]{scale: newScale(1, now)}
}

// Len is the number of pending entries.
func (h *Heap[T]) Len() int { return len(h.heap) }

// Schedule files v for due and returns its handle.
func (h *Heap[T]) Schedule(due time.Time, v T) Handle {
	k := h.ceil(due)
	i, e := h.slab.take(k, v)
	h.heap = append(h.heap, heapItem{k, i, e.gen})
	h.up(len(h.heap) - 1)
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
	h.remove(int(e.next))
	return v, true
}

// Reset moves an entry to a new due and reports whether the handle is live.
func (h *Heap[T]) Reset(handle Handle, due time.Time) bool {
	e := h.slab.find(handle)
	if e == nil {
		return false
	}
	e.due = h.ceil(due)
	at := int(e.next)
	h.heap[at].due = e.due
	if !h.down(at) {
		h.up(at)
	}
	return true
}

// Next returns the least due, or false when the heap is empty.
func (h *Heap[T]) Next() (time.Time, bool) {
	if len(h.heap) == 0 {
		return time.Time{}, false
	}
	return h.time(h.heap[0].due), true
}

// Advance yields what is due at now, each with its due, in the order of dues.
// An entry is removed before it is yielded; stopping early leaves the rest for
// the next call. The heap may be used inside the loop.
func (h *Heap[T]) Advance(now time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		limit := h.floor(now)
		for len(h.heap) > 0 && h.heap[0].due <= limit {
			due, v := h.pop()
			if !yield(due, v) {
				return
			}
		}
	}
}

// Poll removes the first of what is due at now, and returns it with its due;
// false when nothing is.
func (h *Heap[T]) Poll(now time.Time) (due time.Time, v T, ok bool) {
	if len(h.heap) == 0 || h.heap[0].due > h.floor(now) {
		return due, v, false
	}
	due, v = h.pop()
	return due, v, true
}

// pop removes the first entry.
func (h *Heap[T]) pop() (time.Time, T) {
	first := h.heap[0]
	v := h.slab.at(first.index).value
	h.remove(0)
	return h.time(first.due), v
}

func (h *Heap[T]) remove(at int) {
	h.slab.drop(h.heap[at].index)
	last := len(h.heap) - 1
	h.heap[at] = h.heap[last]
	h.heap = h.heap[:last]
	if at < last {
		if !h.down(at) {
			h.up(at)
		}
	}
	if cap(h.heap) > 4096 && len(h.heap) < cap(h.heap)/4 {
		h.heap = append(make([]heapItem, 0, cap(h.heap)/2), h.heap...)
	}
}

func (a heapItem) before(b heapItem) bool {
	return a.due < b.due || a.due == b.due && int32(a.gen-b.gen) < 0
}

// put places an item and tells its entry where.
func (h *Heap[T]) put(at int, item heapItem) {
	h.heap[at] = item
	h.slab.at(item.index).next = uint32(at)
}

func (h *Heap[T]) up(at int) {
	item := h.heap[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !item.before(h.heap[parent]) {
			break
		}
		h.put(at, h.heap[parent])
		at = parent
	}
	h.put(at, item)
}

// down reports whether the item moved.
func (h *Heap[T]) down(at int) bool {
	item, from := h.heap[at], at
	for {
		kid := 2*at + 1
		if kid >= len(h.heap) {
			break
		}
		if kid+1 < len(h.heap) && h.heap[kid+1].before(h.heap[kid]) {
			kid++
		}
		if !h.heap[kid].before(item) {
			break
		}
		h.put(at, h.heap[kid])
		at = kid
	}
	h.put(at, item)
	return at != from
}
