package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Reschedule moves the due time of a scheduled or ready message.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	if err := ref.Check("reschedule"); err != nil {
		return engine.Info{}, err
	}
	var i engine.Info
	err := e.do(ctx, "reschedule", func(c *call) error {
		return c.refer(ref, func(q *queue, hash *keyLookup) error {
			m, err := c.waiting(q, ref, hash)
			if err != nil {
				return err
			}
			if err := c.needContent(&m); err != nil {
				return err
			}
			s := m.base()
			s.Due, s.Attempt = due.Resolve(c.now), 0
			if s.Expires != never { // a redriven message never expires, whatever its policy
				s.Expires = rules.Expiry(s.Due, &m.Policy)
			}
			c.become(&m, s, m.content)
			i, err = c.info(&m, false)
			return err
		})
	})
	if err != nil {
		return engine.Info{}, err
	}
	return i, nil
}
