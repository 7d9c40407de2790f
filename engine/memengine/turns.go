package memengine

import (
	"cmp"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// turns is a heap of the ready messages in lease order. It holds the sort keys, so that
// comparing needs no access to messages. A message that stops being ready leaves a stale
// turn, unless it is the first: q.nextReady skips stale turns, and q.tidyTurns removes them when
// there are many.
type turns []turn

type turn struct {
	priority uint32
	place    uint32
	due      int64
	id       engine.ID
}

func byTurn(a, b turn) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
}

func (a turn) before(b turn) bool {
	if a.priority != b.priority {
		return a.priority < b.priority
	}
	return a.due < b.due || a.due == b.due && a.id < b.id
}

func (h *turns) push(t turn) {
	*h = append(*h, t)
	s := *h
	at := len(s) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if !t.before(s[parent]) {
			break
		}
		s[at] = s[parent]
		at = parent
	}
	s[at] = t
}

// pop removes the first turn.
func (h *turns) pop() {
	s := *h
	last := len(s) - 1
	t := s[last]
	if s = s[:last]; last == 0 {
		*h = nil
		if cap(s) <= 1024 {
			*h = s
		}
		return
	}
	at := 0
	for {
		child := 2*at + 1
		if child >= last {
			break
		}
		if child+1 < last && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(t) {
			break
		}
		s[at] = s[child]
		at = child
	}
	s[at] = t
	*h = s
}

// turnOf returns the turn of a ready message.
func turnOf(m *message) turn { return turn{m.kind.Priority, m.place, m.due, m.id} }

// messageOf returns the message of a turn; nil: the turn is stale.
func (q *queue) messageOf(t turn) *message {
	m := q.msgs.look(t.place)
	if m == nil || m.state != engine.Ready || turnOf(m) != t {
		return nil
	}
	return m
}

// nextReady returns the ready message to lease next; nil: none is ready.
func (q *queue) nextReady() *message {
	for len(q.ready) > 0 {
		if m := q.messageOf(q.ready[0]); m != nil {
			return m
		}
		q.ready.pop()
	}
	return nil
}

// loseTurn removes the turn of a message that stops being ready, or leaves it stale.
func (q *queue) loseTurn(m *message) {
	if q.ready[0].id == m.id {
		q.ready.pop()
	}
	if len(q.ready) > 2*q.states[engine.Ready].n+1024 {
		q.tidyTurns()
	}
}

// tidyTurns keeps one turn for each ready message.
func (q *queue) tidyTurns() {
	q.ready = slices.DeleteFunc(q.ready, func(t turn) bool { return q.messageOf(t) == nil })
	slices.SortFunc(q.ready, byTurn) // a sorted slice is a heap
	q.ready = slices.Compact(q.ready)
}

// oldest returns the earliest due time of the ready messages. There must be some.
func (q *queue) oldest() int64 {
	if len(q.ready) > q.states[engine.Ready].n {
		q.tidyTurns()
	}
	due := q.ready[0].due
	for _, t := range q.ready {
		due = min(due, t.due)
	}
	return due
}
