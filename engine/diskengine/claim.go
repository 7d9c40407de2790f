package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Claim leases the message that ref names, if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	if err := ref.Check("claim"); err != nil {
		return engine.Lease{}, err
	}
	ref.IfState = engine.Gone // Claim ignores it
	var got []messageCopy
	err := e.do(ctx, "claim", func(c *call) error {
		return c.refer(ref, func(q *queue, hash *keyLookup) error {
			m, err := c.waiting(q, ref, hash)
			switch {
			case err != nil:
				return err
			case m.Due > c.ms:
				return engine.RefuseNotDue(ref, rules.Instant(m.Due))
			case q.pause != 0:
				return engine.RefuseNotDue(ref, time.Time{})
			}
			if err := q.refuseClaim(ref, c.now, c.ms); err != nil {
				return err
			}
			if err := c.needContent(&m); err != nil {
				return err
			}
			q.granted(1)
			c.written = true
			p := c.hold(&m, &want, want.Worker)
			got = append(got, p)
			q.arrives(p.deadline)
			return nil
		})
	})
	if err != nil {
		e.giveBack(ctx, [][]messageCopy{got})
		return engine.Lease{}, err
	}
	l, err := got[0].lease()
	return l, wrap("claim", err)
}
