package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
)

// Pause stops leasing and claiming from a queue for d; if d is 0, until Resume.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	if err := engine.CheckPause(name, d); err != nil {
		return err
	}
	return e.do(ctx, "pause", func(c *call) error {
		return c.step(func() error {
			q, err := c.visit(name, true)
			if err != nil {
				return err
			}
			until := int64(never)
			if d > 0 {
				until = engine.When{In: d}.Resolve(c.now)
			}
			c.pause(q, until)
			return nil
		})
	})
}

// Resume ends a pause, even one that is over: it would otherwise come back if the clock were
// set back and the store opened again.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.do(ctx, "resume", func(c *call) error {
		return c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			c.pause(q, 0)
			return nil
		})
	})
}

// pause sets and logs until when a queue is paused; 0: it is not.
func (c *call) pause(q *queue, until int64) {
	q.pause = until
	c.group = (&record.Pause{Queue: q.num, Until: until}).Append(c.group)
	c.touch(q)
	q.nextDue, q.hint = c.ms, true // the pause may end sooner than was said
}
