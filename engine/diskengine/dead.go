package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// stays reports whether a message that died at died is still listed.
func (q *queue) stays(died, ms int64) bool {
	return q.settings == nil || q.settings.DeadKeep == 0 || died >= ms-rules.Millis(q.settings.DeadKeep)
}

// trim drops dead and finished messages if the last item of the call has made them too many.
func (c *call) trim() error {
	if c.over == nil {
		return nil
	}
	if err := c.dropDead(c.over); err != nil {
		return err
	}
	if err := c.dropListed(c.over); err != nil {
		return err
	}
	c.over = nil
	return nil
}

// dropDead drops the dead messages that the settings do not let stay.
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
		if n == store.StepItems {
			return errYield
		}
		m, ok, err := c.earliest(q, &q.deadCursors)
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
	if err := l.Heads(&c.reader, memtable.First, until, c.ms, false); err != nil {
		return m, false, err
	}
	for _, k := range l.All {
		if t := k.Head(); t != nil && (!ok || t.Due < m.Died || t.Due == m.Died && t.ID < m.entry()) {
			m.id, m.Died, m.at, ok = engine.ID(memtable.MessageOf(uint64(t.ID))), t.Due, t.Spot(), true
		}
	}
	return m, ok, nil
}
