package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// refer runs do in a step on the queue of a ref, brought up to the present. If there is no
// such queue, the message is not found.
func (c *call) refer(ref engine.Ref, do func(q *queue, hash *keyLookup) error) error {
	hash := new(keyLookup)
	err := c.step(func() error {
		q, err := c.visit(ref.Queue, false)
		if err != nil {
			return err
		}
		if q == nil {
			return engine.ErrNotFound
		}
		c.see(q)
		err = do(q, hash)
		if store.IsUnreadable(err) {
			err = c.unreadable(ref, err)
		}
		return err
	})
	if err == engine.ErrNotFound {
		err = engine.Refuse(c.op, ref, err)
	}
	return err
}

// waiting finds the message that ref names, if it is scheduled or ready, and in the state that
// ref asks for.
func (c *call) waiting(q *queue, ref engine.Ref, hash *keyLookup) (message, error) {
	m, ok, err := c.byRef(q, ref, hash)
	if err != nil {
		return m, err
	}
	if !ok {
		return m, engine.RefuseUnlessWaiting(c.op, ref, engine.Gone)
	}
	s := m.state(c.ms)
	if m.area == memtable.Live {
		if err := engine.RefuseState(c.op, ref, s); err != nil {
			return m, err
		}
	}
	return m, engine.RefuseUnlessWaiting(c.op, ref, s)
}

// byRef finds the message that a ref names; a dead one by id only. It drops one past its
// expiry.
func (c *call) byRef(q *queue, ref engine.Ref, hash *keyLookup) (m message, ok bool, err error) {
	if ref.ID != 0 {
		m, ok, err = c.byID(q, ref.ID)
	} else {
		m, ok, err = c.messageOfKey(q, memtable.Live, []byte(ref.Key), hash)
	}
	return c.unexpired(m, ok, err)
}

// unexpired passes on what was found, but drops a message past its expiry.
func (c *call) unexpired(m message, ok bool, err error) (message, bool, error) {
	if err != nil || !ok || !m.past(c.ms) {
		return m, ok, err
	}
	if err := c.needHead(&m); err != nil {
		return m, false, err
	}
	c.expire(&m)
	return message{}, false, nil
}

// holds reports whether a live message has a key. It drops one past its expiry. Then the step
// must run again (errYield), as the drop may have moved what the step found before.
func (c *call) holds(q *queue, key []byte, hash *keyLookup) (bool, error) {
	m, found, err := c.messageOfKey(q, memtable.Live, key, hash)
	_, ok, err := c.unexpired(m, found, err)
	if err == nil && found && !ok {
		err = errYield
	}
	return ok, err
}

// byID finds a live or dead message of a queue.
func (c *call) byID(q *queue, id engine.ID) (m message, ok bool, err error) {
	if e, found := c.e.store.Memtables.ByID(uint64(id)); found {
		if e.Queue != q.num || !e.Area.IsMessage() {
			return m, false, nil
		}
		if m, err = c.fromMemtable(q, e); err != nil {
			return m, false, err
		}
		return m, c.shown(&m), nil
	}
	at := store.Spot{}
	if l := q.leaseOf(id); l != nil {
		at = c.e.spotOfLease(l)
	}
	if at.Src == nil {
		if at, err = c.reader.ByID(id); err != nil {
			return m, false, err
		}
	}
	return c.messageAt(q, at)
}

// messageAt is the message at a spot in an sstable, if it is one of queue q.
func (c *call) messageAt(q *queue, at store.Spot) (m message, ok bool, err error) {
	if at.Src == nil || !at.Src.Area.IsMessage() || at.Src.QueueAt(at.Pos).Queue != q.num {
		return m, false, nil
	}
	v, err := c.reader.Head(at)
	if err != nil {
		return m, false, err
	}
	if m, err = c.stored(q, at, v); err != nil {
		return m, false, err
	}
	return m, c.shown(&m), nil
}

// shown reports whether callers may see a message: it has not been dead for too long.
func (c *call) shown(m *message) bool {
	return m.area != memtable.Dead || m.q.stays(m.Died, c.ms)
}
