package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// finishedKey is a remembered key.
type finishedKey struct {
	id engine.ID
	at store.Spot // zero: in a memtable
	record.Trace
	forgotten int64 // when it is forgotten
}

// finished finds the trace of a remembered key. Its time may be over.
func (c *call) finished(q *queue, key []byte, hash *keyLookup) (t finishedKey, ok bool, err error) {
	if len(key) == 0 || q.finished == 0 {
		return t, false, nil
	}
	e, at, ok, err := c.lastOfKey(q, memtable.Finished, key, hash)
	if !ok || err != nil {
		return t, false, err
	}
	t = finishedKey{id: engine.ID(e.ID), at: at, forgotten: e.At}
	t.Trace, err = record.ParseTrace(e.Value)
	return t, err == nil, err
}

// forgetKey frees a key, if it is remembered.
func (c *call) forgetKey(q *queue, key []byte, hash *keyLookup) error {
	t, ok, err := c.finished(q, key, hash)
	if ok {
		c.forgetFinished(q, &t)
	}
	return err
}

func (c *call) forgetFinished(q *queue, t *finishedKey) {
	c.drop(&message{id: t.id, q: q, area: memtable.Finished, at: t.at})
}

// leave drops a message that has ended, remembers its key if its policy says so, and lists it
// if the queue's history does. by names the canceller.
func (c *call) leave(m *message, how engine.Ending, ended int64, by string) {
	q, due, until := m.q, m.Due, ended+rules.Millis(m.Remember)
	remembers := len(m.key) > 0 && m.Remember > 0 && until > c.ms
	lists := !m.bare && c.lists(q, ended)
	if remembers || lists {
		c.past = append(c.past[:0], m.key...) // drop removes the entry that has it
	}
	if lists {
		p := m.listable(how, by)
		c.past = p.Append(c.past)
	}
	n := len(m.key)
	c.drop(m)
	if remembers {
		key := c.past[:n]
		f := record.Finish{ID: m.id, Queue: q.num, Key: key, Due: due, Ending: how, Ended: ended, Forgotten: until}
		c.group = f.Append(c.group)
		c.value = c.e.remember(&f, c.value)
		q.finished++
	}
	if lists {
		c.list(q, &record.List{ID: m.id, Queue: q.num, Key: c.past[:n], Ended: ended, Value: c.past[n:]})
	}
}

// remember puts a key into the memtable. It encodes its trace in room, which it returns.
func (e *Engine) remember(f *record.Finish, room []byte) []byte {
	room = (&record.Trace{Due: f.Due, Ending: f.Ending, Ended: f.Ended}).Append(room[:0])
	e.store.Memtables.Put(memtable.Entry{ID: uint64(f.ID), Queue: f.Queue, Area: memtable.Finished, At: f.Forgotten, Key: f.Key, Value: room})
	return room
}

// expire drops a message that is past its expiry.
func (c *call) expire(m *message) {
	c.leave(m, engine.Expired, m.Expires, "")
	m.q.expired++
}

// forgetOver forgets remembered keys after their time.
func (c *call) forgetOver(q *queue) error {
	return c.dropFirst(q, &q.cursors[memtable.Finished],
		func() bool { return q.finished > 0 },
		func(forgotten int64) bool { return forgotten <= c.ms })
}
