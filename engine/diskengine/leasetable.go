package diskengine

import (
	"crypto/rand"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/timer"
)

// lease is the right to handle a message until its deadline.
type lease struct {
	id       engine.ID
	deadline int64
	token    nonce
	attempt  uint32 // with this lease
	remote   bool

	// What an ack needs to know of the message, so that it need not read it. After
	// the engine opened it is unknown.
	known bool
	apart bool
	key   string

	timer timer.Handle
}

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// leaseTable holds the leases of a queue and finds those that are over.
type leaseTable struct {
	byID  map[engine.ID]*lease
	wheel *timer.Wheel[engine.ID]
	now   int64
}

func newLeaseTable(now int64) leaseTable {
	return leaseTable{byID: make(map[engine.ID]*lease), wheel: timer.NewWheel[engine.ID](time.Millisecond, time.UnixMilli(now)), now: now}
}

// put adds a lease or moves its deadline.
func (t *leaseTable) put(l *lease) {
	if t.byID[l.id] == l {
		t.wheel.Cancel(l.timer)
	}
	t.byID[l.id] = l
	l.timer = t.wheel.Schedule(time.UnixMilli(l.deadline), l.id)
}

func (t *leaseTable) remove(l *lease) {
	t.wheel.Cancel(l.timer)
	delete(t.byID, l.id)
}

// over returns the leases whose deadline has passed. They stay in the table.
func (t *leaseTable) over(now int64) []*lease {
	if now < t.now { // the clock stepped back: so do the deadlines
		t.wheel = timer.NewWheel[engine.ID](time.Millisecond, time.UnixMilli(now))
		for _, l := range t.byID {
			l.timer = t.wheel.Schedule(time.UnixMilli(l.deadline), l.id)
		}
	}
	t.now = now
	var over []*lease
	for _, id := range t.wheel.Advance(time.UnixMilli(now)) {
		if l := t.byID[id]; l != nil {
			over = append(over, l)
		}
	}
	return over
}

// next is the least deadline.
func (t *leaseTable) next() (int64, bool) {
	at, ok := t.wheel.Next()
	return at.UnixMilli(), ok
}
