package diskengine

import (
	"context"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// settings are the settings of a queue, with the state that its rate needs.
type settings struct {
	engine.Settings
	revision uint64
	bucket   rules.Bucket
}

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (s engine.Settings, revision string, err error) {
	revision = neverConfigured
	err = e.do(ctx, "settings", func(c *call) error {
		return c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			c.see(q)
			if revision = q.revision(); q.settings != nil {
				s = q.settings.Settings
				s.Defaults = s.Defaults.Clone()
			}
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
			if made = q.revision(); revision != "" && revision != made {
				return engine.RefuseRevision(name, made)
			}
			// Messages gone by the old settings must not come back.
			if err := c.dropOver(q); err != nil {
				return err
			}
			c.configure(q, s)
			made = q.revision()
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

const neverConfigured = "0"

// revision is the revision of the settings, as callers see it.
func (q *queue) revision() string {
	if q.settings == nil {
		return neverConfigured
	}
	return strconv.FormatUint(q.settings.revision, 10)
}

func (c *call) configure(q *queue, s engine.Settings) {
	if q.settings == nil {
		q.settings = new(settings)
	}
	now := q.settings
	now.Settings = s
	now.revision++
	if s.Rate == 0 {
		now.bucket = rules.Bucket{} // full when there is a rate again
	}
	c.group = (&record.Configure{Queue: q.num, Revision: now.revision, Settings: s}).Append(c.group)
	q.hint = true
	c.touch(q)
}

// defaults are the queue's defaults for pushes; nil: none.
func (q *queue) defaults() *engine.Terms {
	if q.settings == nil {
		return nil
	}
	return &q.settings.Defaults
}

func (s *settings) rate() rules.Rate { return rules.Rate{PerSecond: s.Rate, Burst: s.Bursts()} }

// full reports whether as many messages are leased as the queue or the store allows.
func (q *queue) full() bool {
	s := q.settings
	return s != nil && s.InFlight > 0 && q.leased >= s.InFlight || q.leases.Room(q.leased) == 0
}

// grantable is how many of n messages the settings, and the table of leases, let be leased now.
func (q *queue) grantable(now time.Time, n int) int {
	n = min(n, q.leases.Room(q.leased))
	s := q.settings
	if s == nil {
		return n
	}
	if s.InFlight > 0 {
		n = int(min(int64(n), max(0, s.InFlight-q.leased)))
	}
	if s.Rate > 0 {
		n = min(n, s.bucket.Allows(now, s.rate()))
	}
	return n
}

// granted counts n leases against the rate.
func (q *queue) granted(n int) {
	if s := q.settings; s != nil && s.Rate > 0 {
		s.bucket.Take(n, s.rate())
	}
}

// gathers is when the rate allows a lease, in milliseconds; ms or before: it does now.
func (q *queue) gathers(now time.Time, ms int64) int64 {
	s := q.settings
	if s == nil || s.Rate == 0 {
		return ms
	}
	s.bucket.Allows(now, s.rate()) // brings it to the present
	return s.bucket.Next(s.rate()).Add(time.Millisecond - 1).UnixMilli()
}

// refuseClaim returns why a claim is held back; nil: it is not.
func (q *queue) refuseClaim(ref engine.Ref, now time.Time, ms int64) error {
	switch {
	case q.grantable(now, 1) > 0:
		return nil
	case q.leases.Room(q.leased) == 0:
		return &engine.Error{Op: "claim", Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: engine.ErrLimit,
			Hint: "as many messages are leased as the store allows; settle some, or raise max_leases"}
	case q.full():
		return engine.RefuseClaim(ref, time.Time{})
	}
	return engine.RefuseClaim(ref, rules.Instant(q.gathers(now, ms)))
}
