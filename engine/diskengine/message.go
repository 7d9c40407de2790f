package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// message is a message as a step has found it. Its bytes are valid until the next change.
type message struct {
	id   engine.ID
	q    *queue
	area memtable.Area

	at    store.Spot // where it is in an sstable; zero: in a memtable
	moves bool       // it is in the active memtable: a record without its content will do

	key          []byte
	record.State // as it is now, with what a lapsed lease changes
	record.Head
	content []byte // nil: it was not read
	bare    bool   // only what its lease knows of it was read

	lease *lease // nil: none, not even one that has lapsed
}

// entry is the id of the message's entry.
func (m *message) entry() engine.ID { return engine.ID(m.area.IDOf(uint64(m.id))) }

// state is the state of the message at ms.
func (m *message) state(ms int64) engine.State {
	switch {
	case m.area == memtable.Dead:
		return engine.Dead
	case m.lease != nil && !m.lease.HasLapsed():
		return engine.Leased
	case m.Due > ms:
		return engine.Scheduled
	}
	return engine.Ready
}

// isolated reports whether a ready message is to be leased by itself (Policy.Isolate).
func (m *message) isolated() bool { return (m.lease != nil || m.Lapsed) && m.Alone(m.Attempt) }

// past reports whether a message that is live and not leased is past its expiry.
func (m *message) past(ms int64) bool {
	return m.area == memtable.Live && m.Expires < ms && (m.lease == nil || m.lease.HasLapsed())
}

// fromMemtable makes a message from an entry of a memtable.
func (c *call) fromMemtable(q *queue, e memtable.Entry) (message, error) {
	m := message{id: engine.ID(e.ID), q: q, area: e.Area, moves: !e.Sealed, key: e.Key}
	var err error
	if m.State, m.content, err = record.ParseValue(e.Value); err == nil {
		m.Head, err = record.ParseHead(m.content)
	}
	m.leased()
	return m, err
}

// stored makes a message from an entry of an sstable.
func (c *call) stored(q *queue, at store.Spot, v sstable.Entry) (message, error) {
	m := message{id: engine.ID(v.ID), q: q, area: at.Src.Area, at: at}
	var err error
	if m.key, m.State, m.content, err = record.ParseStored(v.Value); err == nil {
		m.Head, err = record.ParseHead(m.content)
	}
	if v.Cut { // only the head of the content was read
		m.content = nil
	}
	m.leased()
	return m, err
}

// leased looks up the lease of a message, and applies it to the state.
func (m *message) leased() {
	if m.area != memtable.Live {
		return
	}
	l := m.q.leaseOf(m.id)
	if l == nil {
		return
	}
	m.lease = l
	m.Attempt = l.Attempt
	if l.HasLapsed() {
		m.fail(&m.State, l.Deadline, engine.Lapsed)
		m.Lapsed, m.Nonce = l.Given, l.Nonce
	}
}

// token is that of the newest lease, while it settles the message; zero: none does.
func (m *message) token() codec.Token {
	t := codec.Token{Queue: uint64(m.q.num), ID: m.id, Nonce: m.Nonce}
	if m.lease != nil {
		t.Nonce = m.lease.Nonce
	}
	if m.lease != nil && m.lease.Given || m.lease == nil && m.Lapsed {
		return t
	}
	return codec.Token{}
}

// worker returns the name of the worker that had the last lease of the message. If its lapse
// was written down, the last failure has it.
func (m *message) worker() string {
	if m.lease != nil {
		return m.q.leases.Worker(m.lease)
	}
	all := (&codec.Reader{B: m.Failures}).Failures()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Worker
}

// fail adds a failure of the message's last lease to a state.
func (m *message) fail(s *record.State, at int64, reason string) {
	f := engine.Failure{At: rules.Instant(at), Attempt: m.Attempt, Worker: m.worker(), Reason: reason}
	s.Failures = codec.AddFailure(s.Failures, &f)
}

// needContent makes sure that the content of a message is read.
func (c *call) needContent(m *message) error {
	if m.content != nil {
		return nil
	}
	return c.need(m, c.reader.Whole)
}

// reads is Head or Whole of a store.Reader.
type reads func(store.Spot) (sstable.Entry, error)

// need reads a message.
func (c *call) need(m *message, read reads) error {
	at, err := m.at, error(nil)
	if at.Src == nil {
		if at, err = c.reader.ByID(m.id); err != nil {
			return err
		}
	}
	v, err := read(at)
	if err != nil {
		return err
	}
	full, err := c.stored(m.q, at, v)
	if err == nil {
		m.at, m.key, m.content, m.Head, m.bare = at, full.key, full.content, full.Head, false
		m.Due, m.Expires, m.Failures = full.Due, full.Expires, full.Failures
	}
	return err
}

// drop removes a message, and says so in the log.
func (c *call) drop(m *message) {
	c.group = (&record.Gone{ID: m.id, From: m.at.Record(), Listed: m.area == memtable.Listed}).Append(c.group)
	c.touch(m.q)
	c.vanish(m)
}

// vanish removes a message from memory only: another record removes it in the log.
func (c *call) vanish(m *message) {
	c.detach(m)
	if m.at.Src == nil {
		c.e.store.Memtables.Remove(uint64(m.entry()))
	}
}

// detach takes a message out of the counts, and removes its lease and its entry in an sstable.
func (c *call) detach(m *message) {
	q := m.q
	*q.count(m.area)--
	if m.area == memtable.Live {
		c.e.live--
		if m.lease != nil && !m.lease.HasLapsed() {
			if q.full() && (q.ready > 0 || q.front == memtable.First) { // no lease has looked beyond that
				q.arrives(c.ms)
			}
		} else {
			q.leaves(m.Due, m.id)
		}
		if m.lease != nil {
			q.unlease(m.lease)
		}
	}
	if m.at.Src != nil {
		m.at.Kill()
	}
}

// become gives a message another state, and another content if content is not the one it has.
func (c *call) become(m *message, s record.State, content []byte) {
	c.rewrite(m, s, content, nil)
	*m, _ = c.fromMemtable(m.q, c.mustEntry(m.id)) // what was just written can be read
	c.attach(m)
}

// rewrite is become without its end: m is stale afterwards, and the caller attaches it. body
// follows the content of a message that is pushed; else it is nil.
func (c *call) rewrite(m *message, s record.State, content, body []byte) {
	c.value = record.AppendValue(c.value[:0], &s, content)
	if m.moves && len(content) > 0 && &content[0] == &m.content[0] {
		c.group = (&record.Move{ID: m.id, State: s}).Append(c.group)
	} else {
		c.put(&record.Put{ID: m.id, Queue: m.q.num, From: m.at.Record(), Key: m.key, State: s, Content: content, Body: body})
	}
	c.touch(m.q)
	c.detach(m)
	e := memtable.Entry{ID: uint64(m.id), Queue: m.q.num, Area: memtable.AreaOf(s.Dead), At: s.At(), Key: m.key, Value: c.value}
	if body != nil {
		e.Tail, e.Ahead = body, c.ahead
	}
	c.e.store.Memtables.Put(e)
}

// prioritize gives a message another priority. As that is part of the content, the next record
// of the message must have its content.
func (c *call) prioritize(m *message, priority uint32) {
	if priority == m.Priority {
		return
	}
	old, _ := record.HeadOf(m.content) // it was read before
	m.Priority = priority
	c.content = append(m.Head.Append(c.content[:0]), m.content[len(old):]...)
	m.content, m.moves = c.content, false
}

// mustEntry returns the entry of a message that was just put into the memtable.
func (c *call) mustEntry(id engine.ID) memtable.Entry {
	e, _ := c.e.store.Memtables.ByID(uint64(id))
	return e
}

// attach counts a message that was put into the memtable.
func (c *call) attach(m *message) {
	*m.q.count(m.area)++
	if m.area != memtable.Live {
		return
	}
	c.e.live++
	c.waits(m.q, store.Item{Due: m.Due, ID: m.id, Priority: m.Priority, Epoch: c.e.store.Epoch})
}

// base is the state of a message without lapsed leases, from which the next state is made.
func (m *message) base() record.State {
	s := m.State
	s.Lapsed, s.Dead = false, false
	s.Nonce, s.Died = [16]byte{}, 0
	return s
}
