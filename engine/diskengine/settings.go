package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (s engine.Settings, revision string, err error) {
	revision = rules.NoRevision
	err = e.do(ctx, "settings", func(c *call) error {
		return c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			c.see(q)
			s, revision = q.settings.Copy(), q.settings.Version()
			return nil
		})
	})
	if err != nil {
		return engine.Settings{}, "", err
	}
	return s, revision, nil
}

// Configure replaces all settings of a queue. Dead and finished messages that they do not let
// stay are dropped before it answers.
func (e *Engine) Configure(ctx context.Context, name string, s engine.Settings, revision string) (string, error) {
	s.Defaults = s.Defaults.Clone()
	var made string
	err := e.do(ctx, "configure", func(c *call) error {
		err := c.step(func() error {
			q, err := c.visit(name, true)
			if err != nil {
				return err
			}
			c.see(q)
			if made = q.settings.Version(); revision != "" && revision != made {
				return engine.RefuseRevision(name, made)
			}
			// Messages gone by the old settings must not come back.
			if err := c.dropOver(q); err != nil {
				return err
			}
			c.configure(q, s)
			made = q.settings.Version()
			return nil
		})
		if err != nil {
			return err
		}
		return c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			return c.dropOver(q)
		})
	})
	if err != nil {
		return "", err
	}
	return made, nil
}

func (c *call) configure(q *queue, s engine.Settings) {
	if q.settings == nil {
		q.settings = new(rules.Settings)
	}
	q.settings.Replace(s)
	c.group = (&record.Configure{Queue: q.num, Revision: q.settings.Revision, Settings: s}).Append(c.group)
	q.hint = true
	c.touch(q)
}

// room is how many leases the table of leases has room for.
func (q *queue) room() int { return q.leases.Room(q.leased) }

// full reports whether as many messages are leased as the queue or the store allows.
func (q *queue) full() bool { return q.settings.Full(q.leased) || q.room() == 0 }

// grantable is how many of n messages the settings, and the table of leases, let be leased now.
func (q *queue) grantable(now time.Time, n int) int {
	return q.settings.Grantable(now, min(n, q.room()), q.leased)
}

// refuseClaim returns why a claim is held back; nil: it is not.
func (q *queue) refuseClaim(ref engine.Ref, now time.Time) error {
	if q.room() == 0 {
		return &engine.Error{Op: "claim", Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: engine.ErrLimit,
			Hint: "as many messages are leased as the store allows; settle some, or raise max_leases"}
	}
	return q.settings.RefuseClaim(ref, now, q.leased)
}
