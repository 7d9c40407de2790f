package diskengine

import (
	"context"
	"slices"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// loan is a copy of messages, in memory that is used again. A call works on it,
// because a caller who has left may change what was his.
type loan struct {
	msgs   []engine.Message
	bodies []byte
}

var loans = sync.Pool{New: func() any { return new(loan) }}

// loanKept bounds the memory that a loan keeps for the next one.
const loanKept = 1 << 20

// lend returns messages to work on, and what is to be called when nothing refers to
// them any more. Those of a caller who stays are his.
func lend(ctx context.Context, msgs []engine.Message) ([]engine.Message, func()) {
	if ctx.Done() == nil {
		return msgs, func() {}
	}
	l := loans.Get().(*loan)
	l.msgs = append(l.msgs, msgs...)
	size := 0
	for i := range msgs {
		size += len(msgs[i].Body)
	}
	l.bodies = slices.Grow(l.bodies, size)
	for i := range l.msgs {
		m, from := &l.msgs[i], len(l.bodies)
		l.bodies = append(l.bodies, m.Body...)
		m.Body = l.bodies[from:len(l.bodies):len(l.bodies)]
		m.Headers, m.Terms = slices.Clone(m.Headers), m.Terms.Clone()
	}
	return l.msgs, l.end
}

func (l *loan) end() {
	clear(l.msgs)
	if cap(l.bodies) > loanKept {
		return
	}
	l.msgs, l.bodies = l.msgs[:0], l.bodies[:0]
	loans.Put(l)
}
