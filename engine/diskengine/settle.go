package diskengine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// Settle ends or extends leases. Those of many queues share few batches.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	s = slices.Clone(s)
	for i := range s {
		if w := s[i].When; w != nil {
			when := *w
			s[i].When = &when
		}
	}
	results := make([]engine.Settled, len(s))
	if err := e.do(ctx, "settle", e.settling(s, results)); err != nil {
		return nil, err
	}
	return results, nil
}

// settling is the call that settles s.
func (e *Engine) settling(s []engine.Settlement, results []engine.Settled) func(now clock, p *pending) error {
	return func(now clock, p *pending) error {
		tokens := make([]token.Token, len(s))
		for i := range s {
			tokens[i], _ = token.Parse(s[i].Token)
		}
		shares, err := e.shares(len(s), func(i int) *queue { return e.byNumber[number(tokens[i])] }, func(i int) (*queue, error) {
			results[i].Err = cmp.Or(s[i].Check(), lost(nil, tokens[i]))
			return nil, nil
		})
		if err != nil {
			return err
		}
		fail := func(q *queue, i int, err error) {
			results[i] = engine.Settled{Err: &engine.Error{Op: "settle", Queue: q.name, ID: tokens[i].ID, Err: err}}
		}
		return e.changeAll(now, p, shares, func(c *change, items []int) error {
			p.see(c.q)
			for _, i := range items {
				var err error
				if results[i], err = c.settle(&s[i], tokens[i]); err != nil {
					if e.store.failed() != nil {
						return err
					}
					fail(c.q, i, err)
				}
				results[i].Queue = c.q.name
			}
			return nil
		}, fail)
	}
}

// number is that of the queue whose lease a token names, or 0, which no queue has.
func number(t token.Token) uint32 {
	if t.Queue > math.MaxUint32 {
		return 0
	}
	return uint32(t.Queue)
}

// giveBack releases leases whose caller has left. What cannot be released lapses.
func (e *Engine) giveBack(leases []engine.Lease) {
	back := engine.Releases(leases)
	_ = e.carryOut("settle", e.settling(back, make([]engine.Settled, len(back))))
}

func lost(q *queue, t token.Token) error {
	ref := engine.Ref{ID: t.ID}
	if q != nil {
		ref.Queue = q.name
	}
	return engine.Refuse("settle", ref, engine.ErrLeaseLost)
}

// settle decides one settlement. The error beside the result is not the caller's
// doing.
func (c *change) settle(s *engine.Settlement, t token.Token) (engine.Settled, error) {
	if err := s.Check(); err != nil {
		return engine.Settled{Err: err}, nil
	}
	l, err := c.leased(t.ID)
	if err != nil {
		return engine.Settled{}, err
	}
	if l == nil {
		return c.settleLate(s, t)
	}
	if l.token != t.Nonce {
		return engine.Settled{Err: lost(c.q, t)}, nil
	}
	if s.Do == engine.Ack && l.known {
		c.endLease(l)
		return engine.Settled{State: engine.Gone}, c.remove(l.id, l.key, l.apart)
	}
	r, err := c.message(l.id)
	if err == nil && r == nil {
		err = codec.ErrMalformed
	}
	if err != nil {
		return engine.Settled{}, err
	}
	if s.Do == engine.Extend {
		longer := *l
		longer.deadline = c.extended(s, r)
		return engine.Settled{State: engine.Leased, Until: instant(longer.deadline)}, c.lease(&longer)
	}
	c.endLease(l)
	return c.become(s, r, l.attempt)
}

// settleLate settles with the token of a lease that lapsed.
func (c *change) settleLate(s *engine.Settlement, t token.Token) (engine.Settled, error) {
	r, err := c.message(t.ID)
	if err != nil {
		return engine.Settled{}, err
	}
	if r == nil || !r.lapsed || r.token != t.Nonce || c.q.decayed(r, c.now) {
		return engine.Settled{Err: lost(c.q, t)}, nil
	}
	switch {
	case r.expired(c.now.ms):
		return engine.Settled{Err: lost(c.q, t)}, c.expire(r)
	case r.dead:
		revives := s.Do != engine.Ack && s.Do != engine.Bury && s.Do != engine.Retry
		if r.key != "" && (revives || s.Do == engine.Ack && r.Remember > 0) {
			ref, err := c.holder(r.key)
			switch {
			case err != nil:
				return engine.Settled{}, err
			case ref.id != 0 && revives:
				return engine.Settled{Err: lost(c.q, t)}, nil // its key has passed on to another
			case ref.id != 0:
				r.Remember = 0
			default:
				err = c.forget(ref.memory)
			}
			if err != nil {
				return engine.Settled{}, err
			}
		}
		err = c.exhume(r)
	default:
		err = c.dequeue(r.position())
	}
	if err != nil {
		return engine.Settled{}, err
	}
	if s.Do != engine.Extend {
		return c.become(s, r, r.attempt)
	}
	l := &lease{id: r.id, deadline: c.extended(s, r), token: t.Nonce, attempt: r.attempt, known: !r.remembered(), apart: r.apart, key: r.key, remote: true}
	wasDead := r.dead
	r.dead, r.lapsed = false, false
	if err = c.write(r); err == nil && wasDead {
		err = c.hold(r)
	}
	return engine.Settled{State: engine.Leased, Until: instant(l.deadline)}, errors.Join(err, c.lease(l))
}

func (c *change) extended(s *engine.Settlement, r *record) int64 {
	if s.TTR > 0 {
		return c.now.after(s.TTR)
	}
	return c.now.after(r.TTR)
}

// become makes of a message that is in no order what the settlement says.
func (c *change) become(s *engine.Settlement, r *record, attempt uint32) (engine.Settled, error) {
	wasDead := r.dead
	r.attempt, r.lapsed, r.dead = attempt, false, false
	switch s.Do {
	case engine.Ack:
		if wasDead && !r.remembered() { // it held no key, and another may by now
			return engine.Settled{State: engine.Gone}, c.remove(r.id, "", r.apart)
		}
		return engine.Settled{State: engine.Gone}, c.finish(r, engine.Acked, c.now.ms)
	case engine.Retry:
		r.lastError = s.KeptReason()
		if r.attempt >= r.MaxAttempts {
			return engine.Settled{State: engine.Dead}, c.bury(r, c.now.ms, !wasDead)
		}
		if s.When != nil {
			r.due = s.When.Resolve(c.now.Time)
		} else {
			r.due = c.now.after(r.RetryDelay(r.attempt))
		}
	case engine.Bury:
		r.lastError = s.KeptReason()
		return engine.Settled{State: engine.Dead}, c.bury(r, c.now.ms, !wasDead)
	case engine.Snooze:
		r.due = s.When.Resolve(c.now.Time)
		r.attempt -= min(1, r.attempt)
	case engine.Release:
		r.attempt -= min(1, r.attempt)
	}
	return engine.Settled{State: waitingState(r.due, c.now.ms), Until: instant(r.due)}, c.wait(r)
}
