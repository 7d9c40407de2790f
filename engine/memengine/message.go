package memengine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/timer"
)

// none is the instant that never comes, where others are Unix milliseconds.
const none = math.MaxInt64

// message is a message as kept. Its queue's lock guards it. Whoever changes an
// instant, the state, the priority or the key first takes it out of the queue's
// orders (queue.take) and then puts it back (queue.put).
type message struct {
	id    engine.ID
	key   string
	state engine.State
	engine.Content
	engine.Policy

	due, created, expires int64 // expires: none for never
	deadline              int64 // of the lease, when leased
	died                  int64 // when dead
	attempt               uint32
	lastError             string

	// The last lease's nonce settles as long as held is true: beyond the
	// deadline too, until something else has been decided.
	nonce nonce
	held  bool

	live   bool         // counted in Engine.pending and, if it has a key, in queue.keys
	untold bool         // counted in queue.died
	timer  timer.Handle // in queue.wheel, when scheduled
	slot   int          // in its bucket of queue.states

	// Places in heaps, counted from 1; 0: not there.
	turn, oldest, expiring int
}

// ends returns the instant by which lists order the messages of its state.
func (m *message) ends() int64 {
	switch m.state {
	case engine.Leased:
		return m.deadline
	case engine.Dead:
		return m.died
	}
	return m.due
}

// byEnd orders messages of one state as lists show them.
func byEnd(a, b *message) int {
	return cmp.Or(cmp.Compare(a.ends(), b.ends()), cmp.Compare(a.id, b.id))
}

// expiry returns when a message due then expires under policy p.
func expiry(due int64, p *engine.Policy) int64 {
	if p.ExpireAfter <= 0 {
		return none
	}
	return due + int64((p.ExpireAfter+time.Millisecond-1)/time.Millisecond)
}

// giveBack undoes the attempt that the last lease counted.
func (m *message) giveBack() {
	if m.attempt > 0 {
		m.attempt--
	}
}

// info copies what callers may see; the body only when asked for.
func (m *message) info(queue string, body bool) engine.Info {
	i := engine.Info{
		ID: m.id, Queue: queue, Key: m.key, State: m.state,
		Due: instant(m.due), Created: instant(m.created), Expires: instant(m.expires),
		Attempt: m.attempt, LastError: m.lastError,
		Content: engine.Content{ContentType: m.ContentType, Headers: copied(m.Headers)},
		Policy:  copyPolicy(m.Policy),
	}
	if body {
		i.Body = copied(m.Body)
	}
	switch m.state {
	case engine.Leased:
		i.Deadline = instant(m.deadline)
	case engine.Dead:
		i.Died = instant(m.died)
	}
	return i
}

func copyContent(c engine.Content) engine.Content {
	c.Body, c.Headers = copied(c.Body), copied(c.Headers)
	return c
}

func copyPolicy(p engine.Policy) engine.Policy {
	p.Backoff = copied(p.Backoff)
	return p
}

// copied is slices.Clone that makes nil of the empty slice.
func copied[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return slices.Clone(s)
}

// instant is ms as the contract has it: UTC, zero for none.
func instant(ms int64) time.Time {
	if ms == none {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
