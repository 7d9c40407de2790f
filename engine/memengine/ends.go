package memengine

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// ends is a heap of the messages of one state by (end, id). A message that leaves the state
// leaves a stale turn, which is skipped at the top.
type ends struct {
	state engine.State
	heap  turns
}

func endOf(m *message) turn { return turn{place: m.place, due: m.end, id: m.id} }

// ended returns the message of a turn; nil: it has left the state.
func (q *queue) ended(x *ends, t turn) *message {
	m := q.msgs.look(t.place)
	if m == nil || m.state != x.state || endOf(m) != t {
		return nil
	}
	return m
}

// endsFirst returns the message that ends first; nil: none.
func (q *queue) endsFirst(x *ends) *message {
	for len(x.heap) > 0 {
		if m := q.ended(x, x.heap[0]); m != nil {
			return m
		}
		x.heap.pop()
	}
	return nil
}

// addEnd adds a message to x. n is the number of messages in the state, with this one.
func (q *queue) addEnd(x *ends, m *message, n int) {
	x.heap.push(endOf(m))
	if len(x.heap) > 2*n+1024 {
		x.heap = slices.DeleteFunc(x.heap, func(t turn) bool { return q.ended(x, t) == nil })
		slices.SortFunc(x.heap, byTurn) // a sorted slice is a heap
	}
}
