package memengine

import (
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// finished tracks remembered keys. Such a message is in msgs and keys, in the state
// Finished, and in none of the queue's other indexes. Its data is the key alone, created is
// when it finished, and end is when it is forgotten.
type finished struct {
	n     int
	first ends // including stale ones: their keys were taken or freed meanwhile
}

// dropChunk bounds how many outdated messages one visit drops. Readers skip the others.
const dropChunk = 1000

// leave drops a message that ended in this way, remembers its key, and lists it in the
// history. by names the canceller.
func (q *queue) leave(m *message, how engine.Ending, ended int64, by string) {
	listed := q.listable(m, how, ended, by)
	q.remember(m, how, ended)
	if listed != nil {
		q.list(*listed)
	}
}

// remember drops a message that ended in this way, and remembers its key.
func (q *queue) remember(m *message, how engine.Ending, ended int64) {
	until := ended + rules.Millis(m.kind.Remember)
	if m.keyLen == 0 || m.kind.Remember <= 0 || until <= q.ms {
		q.drop(m)
		return
	}
	if !m.live { // late ack of a dead message
		switch other := q.keyed(m.key()); {
		case other == nil:
		case other.live:
			q.drop(m)
			return
		default:
			q.forget(other)
		}
	}
	q.take(m)
	q.ids.remove(m)
	if m.live {
		m.live = false
		q.engine.pending.Add(-1)
	} else {
		q.keys.add(m)
	}
	m.data, m.kind, m.rare, m.holder = strings.Clone(m.key()), nil, nil, nil
	m.state, m.ending, m.created, m.end = engine.Finished, how, ended, until
	if q.finished == nil {
		q.finished = &finished{first: ends{state: engine.Finished}}
	}
	q.finished.n++
	q.addEnd(&q.finished.first, m, q.finished.n)
}

// forget frees the key of a finished message.
func (q *queue) forget(m *message) {
	q.keys.remove(m)
	q.msgs.drop(m.place)
	if q.finished.n--; q.finished.n == 0 {
		q.finished = nil
	}
}

// forgetKey frees a key, if a finished message holds it.
func (q *queue) forgetKey(key string) {
	if q.finished == nil {
		return
	}
	if m := q.keyed(key); m != nil && !m.live {
		q.forget(m)
	}
}

// remembers reports whether a message is finished and its key still remembered.
func (q *queue) remembers(m *message) bool { return m.state == engine.Finished && m.end > q.ms }

// forgetOver removes some finished messages past their time.
func (q *queue) forgetOver() {
	for range dropChunk {
		if q.finished == nil {
			return
		}
		m := q.endsFirst(&q.finished.first)
		if m.end > q.ms {
			return
		}
		q.forget(m)
	}
}

// finishedInfo returns the Info of a message whose key is remembered.
func (q *queue) finishedInfo(m *message) engine.Info {
	i := engine.Info{
		ID: m.id, Queue: q.name, Key: strings.Clone(m.data), State: engine.Finished, Due: rules.Instant(m.due),
		Ending: m.ending, Ended: rules.Instant(m.created),
	}
	if h := q.byID(m.id); h != nil {
		i = q.historyInfo(h)
	}
	i.Forgotten = rules.Instant(m.end)
	return i
}
