package memengine

import (
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/timer"
)

// queue is one queue and all its messages, guarded by mu.
//
// Each message is in ids, in the bucket of states that its state and end name,
// and further by state: scheduled in wheel; ready in ready and oldest; leased in
// leases; scheduled and ready, if they ever expire, in expiring. The message that
// holds a key is in keys, the dead of a key are in deadKeys.
type queue struct {
	engine *Engine
	name   string
	number uint64 // for tokens

	mu      sync.Mutex
	retired bool // no longer the engine's queue of this name
	now     time.Time
	ms      int64 // now in milliseconds, rounded down

	ids      map[engine.ID]*message
	keys     map[string]*message
	deadKeys map[string][]*message // oldest death first
	states   [engine.Dead + 1]minutes
	wheel    *timer.Wheel[*message]
	ready    heap
	oldest   heap
	leases   heap
	expiring heap

	paused bool
	until  int64 // end of the pause

	told    int64 // the NextDue last told; none when nothing was
	hint    bool  // tell the watchers
	expired int   // messages gone by expiry, not yet told by Lease
	died    int   // messages dead by a lapse, not yet told by Lease, and still so
}

func newQueue(e *Engine, name string, number uint64) *queue {
	return &queue{
		engine: e, name: name, number: number,
		ids:      make(map[engine.ID]*message),
		keys:     make(map[string]*message),
		deadKeys: make(map[string][]*message),
		wheel:    timer.NewWheel[*message](time.Millisecond, e.now()),
		ready:    heap{compare: byTurn, place: turnOf},
		oldest:   heap{compare: byEnd, place: oldestOf},
		leases:   heap{compare: byEnd, place: turnOf},
		expiring: heap{compare: byExpiry, place: expiringOf},
		told:     none,
	}
}

// put enters a message, which is in none of the queue's orders, in those of
// state s.
func (q *queue) put(m *message, s engine.State) {
	m.state = s
	switch s {
	case engine.Scheduled:
		m.timer = q.wheel.Schedule(time.UnixMilli(m.due), m)
	case engine.Ready:
		q.ready.add(m)
		q.oldest.add(m)
	case engine.Leased:
		q.leases.add(m)
	}
	if (s == engine.Scheduled || s == engine.Ready) && m.expires != none {
		q.expiring.add(m)
	}
	q.states[s].add(m)

	if s != engine.Dead {
		if !m.live { // back from the dead
			q.engine.pending.Add(1)
			q.enlist(m)
		}
		return
	}
	q.delist(m)
	if m.key != "" {
		dead := q.deadKeys[m.key]
		at, _ := slices.BinarySearchFunc(dead, m, byEnd)
		q.deadKeys[m.key] = slices.Insert(dead, at, m)
	}
}

// enlist gives a message, which admit has counted, what live ones have.
func (q *queue) enlist(m *message) {
	m.live = true
	if m.key != "" {
		q.keys[m.key] = m
	}
}

// delist takes it away again, and the message off the count.
func (q *queue) delist(m *message) {
	if !m.live {
		return
	}
	m.live = false
	q.engine.pending.Add(-1)
	if m.key != "" {
		delete(q.keys, m.key)
	}
}

// take removes a message from the orders of its state. It keeps its key, unless
// it is dead.
func (q *queue) take(m *message) {
	switch m.state {
	case engine.Scheduled:
		q.wheel.Cancel(m.timer)
		m.timer = 0
	case engine.Ready:
		q.ready.remove(m)
		q.oldest.remove(m)
	case engine.Leased:
		q.leases.remove(m)
	case engine.Dead:
		if m.untold {
			m.untold = false
			q.died--
		}
		if m.key != "" {
			dead := q.deadKeys[m.key]
			dead = slices.DeleteFunc(dead, func(d *message) bool { return d == m })
			if q.deadKeys[m.key] = dead; len(dead) == 0 {
				delete(q.deadKeys, m.key)
			}
		}
	}
	q.expiring.remove(m)
	q.states[m.state].remove(m)
}

// place puts a message where its due time says.
func (q *queue) place(m *message) {
	if m.due > q.ms {
		q.put(m, engine.Scheduled)
	} else {
		q.put(m, engine.Ready)
	}
}

// move takes a message out and places it at a new due time.
func (q *queue) move(m *message, due int64) {
	q.take(m)
	m.due = due
	q.place(m)
}

// die makes a message dead since at.
func (q *queue) die(m *message, at int64, reason string) {
	q.take(m)
	m.died, m.lastError = at, reason
	q.put(m, engine.Dead)
}

// drop forgets a message.
func (q *queue) drop(m *message) {
	q.take(m)
	q.delist(m)
	delete(q.ids, m.id)
}

// advance brings the queue up to its now.
func (q *queue) advance() {
	for _, m := range q.wheel.Advance(q.now) {
		m.timer = 0
		q.take(m)
		q.put(m, engine.Ready)
	}
	for m := q.leases.min(); m != nil && m.deadline <= q.ms; m = q.leases.min() {
		q.lapse(m)
	}
	for m := q.expiring.min(); m != nil && m.expires < q.ms; m = q.expiring.min() {
		q.drop(m)
		q.expired++
	}
}

// turnBack makes wait again what is not due any more, since the clock stepped back.
func (q *queue) turnBack() {
	for _, m := range slices.Clone(q.ready.items) {
		if m.due > q.ms {
			q.take(m)
			q.place(m)
		}
	}
}

// lapsed is the LastError of a message whose lease ended at its deadline.
const lapsed = "lease lapsed"

// lapse ends a lease at its deadline. The token goes on settling.
func (q *queue) lapse(m *message) {
	if m.attempt >= m.MaxAttempts {
		q.die(m, m.deadline, lapsed)
		m.untold = true
		q.died++
		return
	}
	q.take(m)
	m.lastError = lapsed
	q.place(m)
}

// find returns the message that ref means, live or dead by id, live by key; nil:
// there is none.
func (q *queue) find(ref engine.Ref) *message {
	if ref.ID == 0 {
		return q.keys[ref.Key]
	}
	return q.ids[ref.ID]
}

// next returns when a Lease may give something: now if something is ready.
func (q *queue) next() int64 {
	switch {
	case q.paused:
		return q.until
	case q.ready.Len() > 0:
		return q.ms
	}
	at := int64(none)
	if due, ok := q.wheel.Next(); ok {
		at = due.UnixMilli()
	}
	if m := q.leases.min(); m != nil {
		at = min(at, m.deadline)
	}
	return max(at, q.ms+1)
}

// empty says that the queue holds nothing that anybody could ask for.
func (q *queue) empty() bool { return len(q.ids) == 0 && !q.paused }
