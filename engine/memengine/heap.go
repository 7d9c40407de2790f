package memengine

import (
	"cmp"
	stdheap "container/heap"
)

// heap is a heap of messages that knows where each one stands, so that any can
// be removed.
type heap struct {
	items   []*message
	compare func(a, b *message) int
	place   func(*message) *int // where a message keeps its place: index + 1, 0 when not here
}

func (h *heap) min() *message {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *heap) add(m *message) { stdheap.Push(h, m) }

func (h *heap) remove(m *message) {
	if at := *h.place(m); at > 0 {
		stdheap.Remove(h, at-1)
	}
}

// The methods of container/heap.

func (h *heap) Len() int           { return len(h.items) }
func (h *heap) Less(i, j int) bool { return h.compare(h.items[i], h.items[j]) < 0 }

func (h *heap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.place(h.items[i]), *h.place(h.items[j]) = i+1, j+1
}

func (h *heap) Push(x any) {
	m := x.(*message)
	h.items = append(h.items, m)
	*h.place(m) = len(h.items)
}

func (h *heap) Pop() any {
	last := len(h.items) - 1
	m := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	*h.place(m) = 0
	return m
}

// byTurn is the order in which ready messages are handed out.
func byTurn(a, b *message) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
}

func byExpiry(a, b *message) int { return cmp.Compare(a.expires, b.expires) }

func turnOf(m *message) *int     { return &m.turn }
func oldestOf(m *message) *int   { return &m.oldest }
func expiringOf(m *message) *int { return &m.expiring }
