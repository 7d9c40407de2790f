package memengine

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// queue is one queue and all its messages, guarded by mu.
//
// Each message is in msgs, and the indexes refer to its place there. It is also in ids, and
// in the bucket of states for its state and end. A scheduled message is in scheduled by due
// time, a ready one in ready, and a leased one in leases by deadline. A scheduled or ready
// message that expires is in expiring by the first instant after its expiry. keys has the
// message that holds a key, and endedKeys the dead ones and those of the history with a key. A
// message whose key is remembered is in keys and in finished.
//
// There may be hundreds of thousands of queues, so a queue is small too (TestHeapPerQueue).
type queue struct {
	engine *Engine
	name   string
	number uint64 // for tokens

	mu      sync.Mutex
	retired bool // removed from the engine
	paused  bool
	hint    bool // notify the watchers
	now     time.Time
	ms      int64 // now in milliseconds, rounded down

	msgs      slab[message]
	kinds     kinds
	ids       index
	keys      index
	endedKeys map[string][]*message // those that ended first come first; nil: none yet
	states    [engine.Dead + 1]minutes
	scheduled alarms
	ready     turns
	leases    alarms
	expiring  alarms
	finished  *finished       // nil: none
	history   *history        // nil: none
	settings  *rules.Settings // nil: never configured
	deaths    *ends           // of the dead messages, while the settings limit them; else nil

	until   int64 // end of the pause
	told    int64 // the last NextDue returned; none: there was none
	expired int   // expired messages, not yet reported by Lease
	died    int   // messages that died by a lapse and still are dead, not yet reported by Lease
}

func newQueue(e *Engine, name string, number uint64) *queue {
	q := &queue{engine: e, name: name, number: number, told: none}
	q.ids = index{msgs: &q.msgs}
	q.keys = index{msgs: &q.msgs, keyed: true}
	for s := range q.states {
		q.states[s].msgs = &q.msgs
	}
	return q
}

// put adds a message to the indexes of state s, which ends at end. m must be in none of the
// queue's indexes.
func (q *queue) put(m *message, s engine.State, end int64) {
	m.state, m.end = s, end
	q.states[s].add(m)
	switch s {
	case engine.Scheduled:
		m.timer = q.scheduled.set(q.now, end, m.place)
	case engine.Ready:
		q.ready.push(turnOf(m))
	case engine.Leased:
		m.timer = q.leases.set(q.now, end, m.place)
	}
	if at := m.expires(); at != none && (s == engine.Scheduled || s == engine.Ready) {
		m.rare.timer = q.expiring.set(q.now, at+1, m.place)
	}

	if s != engine.Dead {
		if !m.live { // it was dead
			q.forgetKey(m.key())
			q.engine.pending.Add(1)
			q.enlist(m)
		}
		return
	}
	q.delist(m)
	if q.deaths != nil {
		q.addEnd(q.deaths, m, q.states[engine.Dead].n)
	}
	q.addEnded(m)
}

// addEnded adds a message to endedKeys.
func (q *queue) addEnded(m *message) {
	key := m.key()
	if key == "" {
		return
	}
	if q.endedKeys == nil {
		q.endedKeys = make(map[string][]*message)
	}
	ended := q.endedKeys[key]
	at, _ := slices.BinarySearchFunc(ended, m, byEnd)
	q.endedKeys[strings.Clone(key)] = slices.Insert(ended, at, m) // cloned: key is part of the message's data
}

// removeEnded undoes addEnded.
func (q *queue) removeEnded(m *message) {
	key := m.key()
	if key == "" {
		return
	}
	ended := q.endedKeys[key]
	at, _ := slices.BinarySearchFunc(ended, m, byEnd)
	if at == 0 { // most often; a key may have ended very many times
		ended[0], ended = nil, ended[1:]
	} else {
		ended = slices.Delete(ended, at, at+1)
	}
	if q.endedKeys[strings.Clone(key)] = ended; len(ended) == 0 {
		delete(q.endedKeys, key)
	}
}

// enlist makes a message live. admit has counted it.
func (q *queue) enlist(m *message) {
	m.live = true
	if m.keyLen > 0 {
		q.keys.add(m)
	}
}

// delist undoes enlist, and uncounts the message.
func (q *queue) delist(m *message) {
	if !m.live {
		return
	}
	m.live = false
	q.engine.pending.Add(-1)
	if m.keyLen > 0 {
		q.keys.remove(m)
	}
}

// take removes a message from the indexes of its state. It leaves keys alone, and removes a
// dead message from endedKeys.
func (q *queue) take(m *message) {
	q.states[m.state].remove(m)
	switch m.state {
	case engine.Scheduled:
		q.scheduled.cancel(m.place, m.timer)
	case engine.Ready:
		q.loseTurn(m)
	case engine.Leased:
		q.leases.cancel(m.place, m.timer)
	case engine.Dead:
		if m.untold {
			m.untold = false
			q.died--
		}
		q.removeEnded(m)
	}
	if m.rare != nil {
		q.expiring.cancel(m.place, m.rare.timer)
	}
}

// place puts a message into scheduled or ready, by its due time.
func (q *queue) place(m *message) {
	if m.due > q.ms {
		q.put(m, engine.Scheduled, m.due)
	} else {
		q.put(m, engine.Ready, m.due)
	}
}

// move takes a message and places it at a new due time.
func (q *queue) move(m *message, due int64) {
	q.take(m)
	m.due = due
	q.place(m)
}

// die makes a message dead since at.
func (q *queue) die(m *message, at int64) {
	q.take(m)
	q.put(m, engine.Dead, at)
}

// drop removes a message.
func (q *queue) drop(m *message) {
	q.take(m)
	q.delist(m)
	q.ids.remove(m)
	q.msgs.drop(m.place)
}

// advance brings the queue up to q.now.
func (q *queue) advance() {
	for place := range q.scheduled.due(q.now) {
		m := q.msgs.at(place)
		q.take(m)
		q.put(m, engine.Ready, m.due)
	}
	for place := range q.leases.due(q.now) {
		q.lapse(q.msgs.at(place))
	}
	q.expire()
	q.forgetOver()
	q.trimHistory()
	q.dropDead()
}

// expire drops expired messages.
func (q *queue) expire() {
	for place := range q.expiring.due(q.now) {
		m := q.msgs.at(place)
		q.leave(m, engine.Expired, m.expires(), "")
		q.expired++
	}
}

// turnBack makes messages scheduled again that are no longer due, after the clock stepped
// back.
func (q *queue) turnBack() {
	for _, t := range slices.Clone(q.ready) {
		if m := q.messageOf(t); m != nil && m.due > q.ms {
			q.take(m)
			q.place(m)
		}
	}
}

// lapse ends a lease at its deadline. Its token still settles.
func (q *queue) lapse(m *message) {
	m.fail(m.end, engine.Lapsed)
	if m.attempt >= m.kind.MaxAttempts {
		q.die(m, m.end)
		m.untold = true
		q.died++
		q.dropDead()
		return
	}
	q.take(m)
	q.place(m)
}

// find returns the message that ref names: by id live or dead, by key live; nil: none.
func (q *queue) find(ref engine.Ref) *message {
	if ref.ID == 0 {
		return q.byKey(ref.Key)
	}
	if m := q.byID(ref.ID); m != nil && !m.inHistory {
		return m
	}
	return nil
}

// findWaiting is find for a scheduled or ready message, and checks IfState.
func (q *queue) findWaiting(op string, ref engine.Ref) (*message, error) {
	m := q.find(ref)
	if m == nil {
		return nil, engine.RefuseUnlessWaiting(op, ref, engine.Gone)
	}
	return m, engine.RefuseUnlessWaiting(op, ref, m.state)
}

// next returns when Lease may return a message: now if one is ready.
func (q *queue) next() int64 {
	switch {
	case q.paused:
		return q.until
	case q.states[engine.Ready].n > 0 && q.settings == nil:
		return q.ms
	}
	next := min(q.scheduled.next(), q.leases.next())
	if q.states[engine.Ready].n > 0 {
		at := q.settings.NextAllowed(q.now)
		if at <= q.ms && !q.settings.Full(q.leased()) {
			return q.ms
		}
		if at > q.ms {
			next = min(next, at)
		}
	}
	return max(next, q.ms+1)
}

// empty reports whether the queue holds nothing that a call could return.
func (q *queue) empty() bool { return q.msgs.n == 0 && !q.paused && q.settings == nil }
