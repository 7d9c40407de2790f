package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// stays reports whether a message that died at died is still listed.
func (q *queue) stays(died, ms int64) bool {
	return died >= q.settings.DeadFrom(ms)
}

// trim drops dead and finished messages if the last item of the call has made them too many.
func (c *call) trim() error {
	if c.over == nil {
		return nil
	}
	err := c.dropOver(c.over)
	if err == nil {
		c.over = nil
	}
	return err
}

// dropOver drops the dead and finished messages that the settings do not let stay.
func (c *call) dropOver(q *queue) error {
	if err := c.dropDead(q); err != nil {
		return err
	}
	return c.dropListed(q)
}

// dropDead drops the dead messages that the settings do not let stay.
func (c *call) dropDead(q *queue) error {
	s := q.settings
	if s == nil {
		return nil
	}
	many := func() bool { return s.DeadMax > 0 && q.dead > s.DeadMax }
	return c.dropFirst(q, &q.cursors[memtable.Dead],
		func() bool { return many() || q.dead > 0 && s.DeadKeep > 0 },
		func(died int64) bool { return many() || !q.stays(died, c.ms) })
}

// dropFirst drops the first entries of an area other than Live, while more says that there may
// be some to drop, and goes that one of this time is to be dropped.
func (c *call) dropFirst(q *queue, l *store.Cursors, more func() bool, goes func(at int64) bool) error {
	for n := 0; more(); n++ {
		if n == store.StepItems {
			return errYield
		}
		m, ok, err := c.earliest(q, l)
		if !ok || err != nil || !goes(m.Died) {
			return err
		}
		c.drop(&m)
	}
	return nil
}

// earliest finds the first entry of an area other than Live. Only its id, its place and, in
// Died, its time are set.
func (c *call) earliest(q *queue, l *store.Cursors) (m message, ok bool, err error) {
	l.Refresh(c.e.store, q.num, memtable.First)
	m = message{q: q, area: l.Area}
	m.Died = never
	c.e.store.Memtables.Ascend(q.num, l.Area, memtable.First, func(e memtable.Entry) bool {
		m.id, m.Died, ok = engine.ID(memtable.MessageOf(e.ID)), e.At, true
		return false
	})
	until := m.Died
	if ok {
		until++ // one of the same time may have a smaller id
	}
	if err := l.Heads(&c.reader, memtable.First, until, false); err != nil {
		return m, false, err
	}
	for _, k := range l.All {
		if t := k.Head(); t != nil && (!ok || t.Due < m.Died || t.Due == m.Died && t.ID < m.entry()) {
			m.id, m.Died, m.at, ok = engine.ID(memtable.MessageOf(uint64(t.ID))), t.Due, t.Spot(), true
		}
	}
	return m, ok, nil
}
