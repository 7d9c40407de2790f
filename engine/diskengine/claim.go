package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Claim leases the message that ref names, if it is due; with ref.IfState, if it is in that
// state.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	if err := ref.Check("claim"); err != nil {
		return engine.Lease{}, err
	}
	claimable := (*call).claimable
	if ref.IfState != engine.Gone {
		claimable = (*call).claimableIf
	}
	var got []engine.Lease
	err := e.do(ctx, "claim", func(c *call) error {
		return c.refer(ref, func(q *queue, hash *keyLookup) error {
			m, err := claimable(c, q, ref, hash)
			if err != nil {
				return err
			}
			if err := q.refuseClaim(ref, c.now); err != nil {
				return err
			}
			if err := c.needContent(&m); err != nil {
				return err
			}
			changed, err := c.makeDue(&m)
			if err != nil {
				return err
			}
			q.settings.Granted(1)
			c.written = !changed
			l, err := c.hold(&m, &want, want.Worker)
			if err != nil {
				return err
			}
			got = append(got, l)
			q.arrives(m.lease.Deadline)
			return nil
		})
	})
	if err != nil {
		e.giveBack(ctx, engine.Granted{Messages: got})
		return engine.Lease{}, err
	}
	return got[0], nil
}

// claimable finds the message that ref names if it is due.
func (c *call) claimable(q *queue, ref engine.Ref, hash *keyLookup) (message, error) {
	m, err := c.waiting(q, ref, hash)
	switch {
	case err != nil:
		return m, err
	case m.Due > c.ms:
		return m, engine.RefuseNotDue(ref, rules.Instant(m.Due))
	case q.pause != 0:
		return m, engine.RefuseNotDue(ref, time.Time{})
	}
	return m, nil
}

// claimableIf finds the message that ref names if it is in the state that ref asks for.
func (c *call) claimableIf(q *queue, ref engine.Ref, hash *keyLookup) (message, error) {
	m, ok, err := c.byRef(q, ref, hash)
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, engine.RefuseClaimIf(ref, engine.Gone)
	}
	if err := engine.RefuseClaimIf(ref, m.state(c.ms)); err != nil || m.area == memtable.Live {
		return m, err
	}
	held, err := c.taken(&m, new(keyLookup)) // hash may be of another key
	if held {
		err = engine.RefuseTaken(ref)
	}
	return m, err
}

// makeDue makes a message that is claimed ready, and reports whether it was scheduled or dead.
func (c *call) makeDue(m *message) (changed bool, err error) {
	dead := m.area == memtable.Dead
	if !dead && m.Due <= c.ms {
		return false, nil
	}
	s := m.base()
	s.Due = min(m.Due, c.ms)
	if dead {
		s.Expires = never
		if err := c.forgetKey(m.q, m.key, new(keyLookup)); err != nil {
			return false, err
		}
	}
	c.become(m, s, m.content)
	return true, nil
}
