package logengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
)

// stays reports whether a message that died then is still shown.
func (q *queue) stays(died, ms int64) bool {
	return q.settings == nil || q.settings.DeadKeep == 0 || died >= ms-millis(q.settings.DeadKeep)
}

// trim drops the dead that are too many since an item of the call made one more.
func (c *call) trim() error {
	if c.over == nil {
		return nil
	}
	if err := c.dropDead(c.over); err != nil {
		return err
	}
	c.over = nil
	return nil
}

// dropDead drops the dead that the settings do not let stay.
func (c *call) dropDead(q *queue) error {
	s := q.settings
	if s == nil || s.DeadKeep == 0 && s.DeadMax == 0 {
		return nil
	}
	for n := 0; q.dead > 0; n++ {
		many := s.DeadMax > 0 && q.dead > s.DeadMax
		if !many && s.DeadKeep == 0 {
			return nil
		}
		if n == stepItems {
			return errYield
		}
		m, ok, err := c.earliest(q, &q.graves)
		if !ok || err != nil {
			return err
		}
		if !many && q.stays(m.Died, c.ms) {
			return nil
		}
		c.drop(&m)
	}
	return nil
}

// earliest finds the first of the dead, or of the keys that are remembered, with nothing but its
// place and its time in Died.
func (c *call) earliest(q *queue, l *lane) (m message, ok bool, err error) {
	l.refresh(c.e, q, recent.First)
	m = message{q: q, area: l.area}
	m.Died = never
	c.e.recent.Ascend(q.num, l.area, recent.First, func(e recent.Entry) bool {
		m.id, m.Died, ok = engine.ID(e.ID), e.At, true
		return false
	})
	until := m.Died
	if ok {
		until++ // one of the same time may have a smaller id
	}
	if err := l.heads(c, recent.First, until); err != nil {
		return m, false, err
	}
	for _, k := range l.cursors {
		if len(k.loaded) == 0 {
			continue
		}
		if t := &k.loaded[0]; !ok || t.due < m.Died || t.due == m.Died && t.id < m.id {
			m.id, m.Died, m.at, ok = t.id, t.due, spot{k.src, t.pos}, true
		}
	}
	return m, ok, nil
}

// trace is a key that is remembered.
type trace struct {
	id engine.ID
	at spot // zero: among the recent
	record.Trace
	forgotten int64 // until when
}

// finished finds what is left of a key that was remembered, though its time may be over.
func (c *call) finished(q *queue, key []byte, hash *sought) (t trace, ok bool, err error) {
	if len(key) == 0 || q.finished == 0 {
		return t, false, nil
	}
	if e, found := c.e.recent.ByKey(q.num, recent.Finished, key); found {
		t = trace{id: engine.ID(e.ID), forgotten: e.At}
		t.Trace, err = record.ParseTrace(e.Value)
		return t, err == nil && !q.hides(recent.Finished, t.id), err
	}
	spots, err := c.spotsOfKey(q, recent.Finished, key, hash)
	if err != nil {
		return t, false, err
	}
	for _, s := range spots {
		at := s.now()
		if at.src == nil {
			continue
		}
		v, err := c.valueAt(at)
		if err != nil {
			return t, false, err
		}
		_, value, err := record.ParseKeyed(v.Value)
		if err != nil {
			return t, false, err
		}
		t = trace{id: engine.ID(v.ID), at: at, forgotten: v.At}
		t.Trace, err = record.ParseTrace(value)
		return t, err == nil && !q.hides(recent.Finished, t.id), err
	}
	return t, false, nil
}

// forgetKey frees a key, if it is remembered.
func (c *call) forgetKey(q *queue, key []byte, hash *sought) error {
	t, ok, err := c.finished(q, key, hash)
	if ok {
		c.forgetTrace(q, &t)
	}
	return err
}

func (c *call) forgetTrace(q *queue, t *trace) {
	c.drop(&message{id: t.id, q: q, area: recent.Finished, at: t.at})
}

// leave is drop of a message that went by such an ending, whose key may be remembered.
func (c *call) leave(m *message, how engine.Ending, ended int64) {
	until := ended + millis(m.Remember)
	if len(m.key) == 0 || m.Remember <= 0 || until <= c.ms {
		c.drop(m)
		return
	}
	q, due := m.q, m.Due
	key := append([]byte(nil), m.key...) // the entry goes
	c.drop(m)
	q.spare(m.id)
	c.group = (&record.Finish{ID: m.id, Queue: q.num, Key: key, Due: due, Ending: how, Ended: ended, Forgotten: until}).Append(c.group)
	c.value = (&record.Trace{Due: due, Ending: how, Ended: ended}).Append(c.value[:0])
	c.e.recent.Put(recent.Entry{ID: uint64(m.id), Queue: q.num, Area: recent.Finished, At: until, Key: key, Value: c.value})
	q.finished++
}

// expire drops a message that is past its expiry.
func (c *call) expire(m *message) {
	c.leave(m, engine.Expired, m.Expires)
	m.q.expired++
}

// forgetOver forgets keys whose time is over.
func (c *call) forgetOver(q *queue) error {
	for n := 0; q.finished > 0; n++ {
		if n == stepItems {
			return errYield
		}
		m, ok, err := c.earliest(q, &q.memories)
		if !ok || err != nil || m.Died > c.ms {
			return err
		}
		c.drop(&m)
	}
	return nil
}
