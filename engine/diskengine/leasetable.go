package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
	"github.com/tarryhq/tarry/timer"
)

// lease is the right to handle a message until its deadline. One that is in the
// table is not changed: another takes its place.
type lease struct {
	id       engine.ID
	deadline int64
	token    token.Nonce
	attempt  uint32 // with this lease
	remote   bool

	// What an ack needs to know of the message, so that it need not read it. After
	// the engine opened it is unknown, as it is of a message that is remembered.
	known bool
	apart bool
	key   string

	timer timer.Handle
}

// leaseTable holds the leases of a queue and finds those that are over.
type leaseTable struct {
	byID   map[engine.ID]*lease
	alarms alarms[engine.ID] // one for each lease, but while over's answer is dealt with
}

func newLeaseTable() leaseTable { return leaseTable{byID: make(map[engine.ID]*lease)} }

// put adds a lease, in the place of one that the message had.
func (t *leaseTable) put(l *lease) {
	if was := t.byID[l.id]; was != nil {
		t.alarms.cancel(l.id, was.timer)
	}
	t.byID[l.id] = l
	t.wind(l, l.deadline)
}

// wind sets the timer of a lease that has none.
func (t *leaseTable) wind(l *lease, at int64) {
	l.timer = t.alarms.set(at, l.id)
}

func (t *leaseTable) remove(id engine.ID) {
	if l := t.byID[id]; l != nil {
		t.alarms.cancel(id, l.timer)
		delete(t.byID, id)
	}
}

// over returns leases whose deadline has passed, about the first ones first and at most
// so many. They stay in the table without a timer: the caller removes them or winds
// their timers again.
func (t *leaseTable) over(now int64, most int) (over []*lease) {
	for id := range t.alarms.due(now) {
		if over = append(over, t.byID[id]); len(over) == most {
			break
		}
	}
	return over
}

// next is the least time of a timer.
func (t *leaseTable) next() (int64, bool) { return t.alarms.next() }

// late reports whether leases are over that over has not returned yet.
func (t *leaseTable) late(now int64) bool {
	at, ok := t.next()
	return ok && at <= now
}
