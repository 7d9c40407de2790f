package diskengine

import (
	"cmp"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// lease is the lease of a message, which stays where it is stored. A lapsed lease is kept
// until the message is settled or leased again: until then its attempt counts, and its token
// settles.
type lease = memtable.Lease

// know copies into a lease what is needed of its message when it ends.
func know(l *lease, m *message) {
	l.Known, l.Expires, l.Priority, l.MaxAttempts, l.TTR, l.Isolate = true, m.Expires, m.Priority, m.MaxAttempts, int64(m.TTR), m.Isolate
	if l.Remember = int64(m.Remember); len(m.key) == 0 && !m.bare {
		l.Remember = 0
	}
}

// started is when a lease began.
func started(l *lease) time.Time { return rules.Instant((*codec.Nonce)(&l.Nonce).Started()) }

// setSpot notes in a lease where in an sstable its message is; the zero spot: in a memtable.
func setSpot(l *lease, at store.Spot) {
	l.Table, l.Pos = 0, 0
	if at.Src != nil {
		l.Table, l.Pos = at.Src.Number(), at.Pos
	}
}

// spotOfLease is where in an sstable the message of a lease is, as far as that is known without a look-up.
func (e *Engine) spotOfLease(l *lease) store.Spot {
	if l.Table == 0 {
		return store.Spot{}
	}
	return store.Spot{Src: e.store.Tables.ByNumber(l.Table), Pos: l.Pos}.Now()
}

// leaseOf is the lease of a message, even a lapsed one; nil: there is none.
func (q *queue) leaseOf(id engine.ID) *lease {
	if l := q.leases.ByID(uint64(id)); l != nil && l.Queue == q.num {
		return l
	}
	return nil
}

// held reports whether a message is leased.
func (q *queue) held(id engine.ID) bool {
	if q.leased == 0 {
		return false
	}
	l := q.leaseOf(id)
	return l != nil && !l.HasLapsed()
}

// lease adds a lease to the table.
func (q *queue) lease(l *lease) *lease {
	q.leased++
	q.ends = min(q.ends, l.Deadline)
	return q.leases.Add(l)
}

// unlease removes a running or lapsed lease.
func (q *queue) unlease(l *lease) {
	if !l.HasLapsed() {
		q.leased--
	}
	q.leases.Remove(l)
}

// nextEnd is when the first lease ends; never: there is none.
func (q *queue) nextEnd() int64 {
	q.ends = never
	if q.leased > 0 {
		if l := q.leases.First(q.num); l != nil {
			q.ends = l.Deadline
		}
	}
	return q.ends
}

// lapseAll ends the leases that have outlived their deadlines.
func (c *call) lapseAll(q *queue) error {
	defer c.hinted(q)
	for n := 0; q.ends <= c.ms; n++ {
		if q.nextEnd() > c.ms {
			return nil
		}
		if c.full(n) { // records of other queues count too: all are one entry of the log
			return errYield
		}
		l := q.leases.First(q.num)
		if err := c.lapse(q, l); errors.Is(err, sstable.ErrDamaged) {
			c.damaged(q, engine.ID(l.ID), err)
			q.lapse(l) // the message is not handed out
		} else if err != nil {
			return err
		}
	}
	return nil
}

// lapse notes that a lease has lapsed.
func (q *queue) lapse(l *lease) {
	q.leases.Lapse(l, l.Deadline)
	q.leased--
}

// lapse ends a lease at its deadline: the message waits again, or dies with its last attempt.
// The token still settles it.
func (c *call) lapse(q *queue, l *lease) error {
	if !l.Known {
		m, err := c.leasedMessage(q, l)
		if err != nil {
			return err
		}
		q.leases.SetDue(l, m.Due)
		know(l, &m)
	}
	if l.Attempt < l.MaxAttempts {
		q.lapse(l)
		t := store.Item{Due: l.Due, ID: engine.ID(l.ID), Priority: l.Priority, Epoch: l.Epoch}
		if at := c.e.spotOfLease(l); at.Src != nil {
			t.Src, t.Pos = at.Src, at.Pos
		} else if l.Table != 0 {
			t.Epoch = c.e.store.Epoch - 1 // so that it is looked for in the sstables
		}
		c.waits(q, t)
		return nil
	}
	m, err := c.leasedMessage(q, l)
	if err != nil {
		return err
	}
	if err := c.needContent(&m); err != nil {
		return err
	}
	s := m.base()
	s.Attempt = l.Attempt
	s.Lapsed, s.Nonce = l.Given, l.Nonce
	c.die(&m, s, l.Deadline, engine.Lapsed)
	q.died++
	return nil
}

// die makes a message dead by a failure. at is when it died.
func (c *call) die(m *message, s record.State, at int64, reason string) {
	m.fail(&s, at, reason)
	s.Dead, s.Died = true, at
	c.become(m, s, m.content)
}

// leasedMessage finds the message of a lease.
func (c *call) leasedMessage(q *queue, l *lease) (message, error) {
	id := engine.ID(l.ID)
	if e, ok := c.e.store.Memtables.ByID(l.ID); ok && e.Area == memtable.Live {
		return c.fromMemtable(q, e)
	}
	at := c.e.spotOfLease(l)
	if at.Src == nil {
		var err error
		if at, err = c.reader.ByID(id); err != nil {
			return message{}, err
		}
		if at.Src == nil {
			return message{}, errGone
		}
		setSpot(l, at)
	}
	if l.Known {
		m := message{id: id, q: q, area: memtable.Live, at: at, bare: true}
		m.Due, m.Expires = l.Due, l.Expires
		m.Priority, m.MaxAttempts, m.Isolate = l.Priority, l.MaxAttempts, l.Isolate
		m.TTR, m.Remember = time.Duration(l.TTR), time.Duration(l.Remember)
		m.leased()
		return m, nil
	}
	v, err := c.reader.Head(at)
	if err != nil {
		return message{}, err
	}
	return c.stored(q, at, v)
}

// makeRoom takes some lapsed leases of any queue out of the table, and writes the states of
// their messages down instead. If there were any it returns the error that has the step run
// again. If the message cannot be read, its lease stays.
func (c *call) makeRoom() error {
	var some []*lease
	c.e.leases.EachLapsed(func(l *lease) bool {
		some = append(some, l)
		return len(some) < store.StepItems
	})
	var again error
	for n, l := range some {
		if c.full(n) {
			break
		}
		switch err := c.writeDown(l); {
		case err == store.ErrLack:
			again = err
		case err == nil:
			again = cmp.Or(again, errYield)
		case !store.IsUnreadable(err):
			return err
		}
	}
	return again
}

// writeDown replaces a lapsed lease by the state that its message has now. The token still
// settles it.
func (c *call) writeDown(l *lease) error {
	q := c.e.numbered[l.Queue]
	m, err := c.leasedMessage(q, l)
	if err == nil {
		err = c.needContent(&m)
	}
	switch {
	case errors.Is(err, sstable.ErrDamaged):
		q.unlease(l) // it is not handed out
	case err != nil:
		return err
	default:
		c.become(&m, m.State, m.content)
	}
	return nil
}
