package memengine

import (
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// history has the finished messages that are listed. Such a message is in msgs, ids and, if
// it has a key, endedKeys, in the state Finished. Its data is the key alone, and end is when
// it finished.
type history struct {
	list  minutes
	first ends
	by    *holder // the last canceller: one for many messages
}

// kept returns how long finished messages of this queue are listed, and how many.
func (q *queue) kept() engine.History {
	if q.settings == nil {
		return q.engine.history.Of(nil)
	}
	return q.engine.history.Of(&q.settings.Settings)
}

// oldestListed returns the earliest end of messages that are listed.
func (q *queue) oldestListed() codec.Place {
	return codec.Place{At: rules.ListedFrom(q.kept(), q.ms)}
}

// lists reports whether a message of the history is still listed.
func (q *queue) lists(m *message) bool { return m.listed().Compare(q.oldestListed()) >= 0 }

// listable returns what to list of a message that ends in this way; nil: it is not listed.
func (q *queue) listable(m *message, how engine.Ending, ended int64, by string) *message {
	if ended < q.oldestListed().At {
		return nil
	}
	h := &message{
		data: strings.Clone(m.key()), keyLen: m.keyLen, hash: m.hash, id: m.id, due: m.due, created: m.created, attempt: m.attempt,
		state: engine.Finished, ending: how, end: ended, inHistory: true,
	}
	if m.rare != nil && len(m.rare.failures) > 0 {
		h.more().failures = m.rare.failures
	}
	switch {
	case how == engine.Acked:
		h.more().by = m.holder
	case by != "":
		h.more().by = q.canceller(by)
	}
	return h
}

// canceller returns what to list of a canceller.
func (q *queue) canceller(name string) *holder {
	if q.history != nil && q.history.by != nil && q.history.by.worker == name {
		return q.history.by
	}
	by := &holder{worker: strings.Clone(name)}
	if q.history != nil {
		q.history.by = by
	}
	return by
}

// list adds a message to the history.
func (q *queue) list(h message) {
	place, m := q.msgs.take()
	*m = h
	m.place = place
	if q.history == nil {
		q.history = &history{list: minutes{msgs: &q.msgs}, first: ends{state: engine.Finished}}
	}
	q.ids.add(m)
	q.addEnded(m)
	q.history.list.add(m)
	q.addEnd(&q.history.first, m, q.history.list.n)
	q.trimHistory()
}

// unlist removes a message from the history.
func (q *queue) unlist(m *message) {
	q.history.list.remove(m)
	q.removeEnded(m)
	q.ids.remove(m)
	q.msgs.drop(m.place)
	if q.history.list.n == 0 {
		q.history = nil
	}
}

// trimHistory removes some messages that are no longer listed.
func (q *queue) trimHistory() {
	if q.history == nil {
		return
	}
	most := q.kept().Max
	for range dropChunk {
		if q.history == nil {
			return
		}
		m := q.endsFirst(&q.history.first)
		if q.lists(m) && int64(q.history.list.n) <= most {
			return
		}
		q.unlist(m)
	}
}

// historyInfo returns the Info of a message of the history.
func (q *queue) historyInfo(m *message) engine.Info {
	i := engine.Info{
		ID: m.id, Queue: q.name, Key: strings.Clone(m.data), State: engine.Finished, Due: rules.Instant(m.due), Created: rules.Instant(m.created),
		Attempt: m.attempt, Ending: m.ending, Ended: rules.Instant(m.end),
	}
	if r := m.rare; r != nil {
		if i.Failures = copied(r.failures); len(i.Failures) > 0 {
			i.LastError = i.Failures[len(i.Failures)-1].Reason
		}
		if r.by != nil {
			i.Worker = r.by.worker
			if m.ending == engine.Acked {
				i.Started = rules.Instant(r.by.started)
			}
		}
	}
	return i
}
