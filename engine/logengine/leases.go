package logengine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
)

// lease is that of a message, which stays where it stands meanwhile. One that has lapsed is kept
// until something else is decided: by then its attempt counts, and its token settles.
type lease struct {
	id       engine.ID
	at       spot   // where the message stood in a run; zero: among the recent
	epoch    uint32 // then, Engine.epoch
	deadline int64
	attempt  uint32
	remote   bool // another process has it
	over     bool // it has lapsed, and the message waits
	given    bool // somebody has a token with this nonce
	nonce    token.Nonce

	// What is asked of the message at the end of the lease, if that is known:
	known        bool
	due, expires int64
	head         record.Head
	key          []byte // unless nobody remembers it
}

// know notes what is asked of the message at the end.
func (l *lease) know(m *message) {
	l.known, l.due, l.expires, l.head = true, m.Due, m.Expires, m.Head
	if m.Remember > 0 {
		l.key = slices.Clone(m.key)
	}
}

// lease enters a lease.
func (q *queue) lease(l *lease) {
	q.leases[l.id] = l
	q.ends.add(q, l)
}

// held reports whether a message is leased.
func (q *queue) held(id engine.ID) bool {
	l := q.leases[id]
	return l != nil && !l.over
}

// deadlines finds the leases that end first: a heap, in which what has ended or was extended
// leaves its place behind.
type deadlines []deadline

type deadline struct {
	at int64
	id engine.ID
}

func (d deadline) compare(o deadline) int {
	return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.id, o.id))
}

func (h *deadlines) add(q *queue, l *lease) {
	if len(*h) > 2*len(q.leases)+1024 {
		*h = slices.DeleteFunc(*h, func(d deadline) bool { return q.ending(d) == nil })
		slices.SortFunc(*h, deadline.compare) // a heap too
		*h = slices.Compact(*h)
	}
	s := append(*h, deadline{l.deadline, l.id})
	at := len(s) - 1
	for at > 0 && s[at].compare(s[(at-1)/2]) < 0 {
		s[at], s[(at-1)/2] = s[(at-1)/2], s[at]
		at = (at - 1) / 2
	}
	*h = s
}

// ending is the lease of a place; nil: it has ended or was extended.
func (q *queue) ending(d deadline) *lease {
	l := q.leases[d.id]
	if l == nil || l.over || l.deadline != d.at {
		return nil
	}
	return l
}

// first is the lease that ends first; nil: there is none.
func (h *deadlines) first(q *queue) *lease {
	for len(*h) > 0 {
		if l := q.ending((*h)[0]); l != nil {
			return l
		}
		h.pop()
	}
	return nil
}

func (h *deadlines) pop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	for at := 0; ; {
		kid := 2*at + 1
		if kid >= last {
			break
		}
		if kid+1 < last && s[kid+1].compare(s[kid]) < 0 {
			kid++
		}
		if s[kid].compare(s[at]) >= 0 {
			break
		}
		s[at], s[kid] = s[kid], s[at]
		at = kid
	}
	if *h = s; last == 0 && cap(s) > 1024 {
		*h = nil
	}
}

// next is when the first lease ends; never: there is none.
func (h *deadlines) next(q *queue) int64 {
	if l := h.first(q); l != nil {
		return l.deadline
	}
	return never
}

// lapseAll ends the leases that have outlived their deadlines.
func (c *call) lapseAll(q *queue) error {
	defer c.hinted(q)
	for n := 0; ; n++ {
		l := q.ends.first(q)
		if l == nil || l.deadline > c.ms {
			return nil
		}
		if n > 0 && c.full(n) {
			return errYield
		}
		if err := c.lapse(q, l); errors.Is(err, run.ErrDamaged) {
			c.e.damaged(q, l.id, err)
			q.ends.pop()
			l.over = true // and has no turn
			q.leased--
		} else if err != nil {
			return err
		}
	}
}

// lapse ends a lease at its deadline. The token goes on settling.
func (c *call) lapse(q *queue, l *lease) error {
	if !l.known {
		m, err := c.leasedMessage(q, l)
		if err != nil {
			return err
		}
		l.know(&m)
	}
	if l.attempt < l.head.MaxAttempts {
		q.ends.pop()
		l.over = true
		q.leased--
		c.waits(q, turn{due: l.due, id: l.id, priority: l.head.Priority, src: l.at.src, pos: l.at.pos, epoch: l.epoch})
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
	s.Attempt = l.attempt
	s.Lapsed, s.Nonce = l.given, l.nonce
	c.die(&m, s, l.deadline, engine.Lapsed)
	q.died++
	return nil
}

// die makes a message dead since at.
func (c *call) die(m *message, s record.State, at int64, reason string) {
	s.Dead, s.Died, s.LastError = true, at, []byte(reason)
	c.become(m, s, m.content)
}

// leasedMessage finds the message of a lease.
func (c *call) leasedMessage(q *queue, l *lease) (message, error) {
	if e, ok := c.e.recent.ByID(uint64(l.id)); ok && e.Area == recent.Live {
		return c.recent(q, e)
	}
	if l.at = l.at.now(); l.at.src == nil {
		at, err := c.spotOfID(l.id)
		if err != nil {
			return message{}, err
		}
		if at.src == nil {
			return message{}, errGone
		}
		l.at = at
	}
	if l.known {
		m := message{id: l.id, q: q, area: recent.Live, at: l.at, key: l.key, Head: l.head}
		m.Due, m.Expires = l.due, l.expires
		m.leased()
		return m, nil
	}
	v, err := c.valueAt(l.at)
	if err != nil {
		return message{}, err
	}
	return c.stored(q, l.at, v)
}
