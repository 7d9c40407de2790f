package memengine

import (
	"context"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Lease leases due messages. It waits for nothing but locks.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return engine.Grant{}, err
	}
	defer e.calls.Leave()
	grant := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	var a answer
	now := e.now().UnixMilli()
	for i, want := range wants {
		g := &grant.Queues[i]
		if g.Err = want.Check(); g.Err != nil {
			continue
		}
		e.with(want.Queue, false, func(q *queue) {
			*g = q.lease(want, &a)
			now = max(now, q.ms)
		})
	}
	// Time may have passed between wants, and no NextDue may be in the past.
	grant.Now = rules.Instant(now)
	for i := range grant.Queues {
		if g := &grant.Queues[i]; !g.NextDue.IsZero() && !g.NextDue.After(grant.Now) {
			g.NextDue = rules.Instant(now + 1)
		}
	}
	return grant, nil
}

// lease answers one want.
func (q *queue) lease(want engine.Want, a *answer) engine.Granted {
	g := engine.Granted{Expired: q.expired, Died: q.died}
	q.expired, q.died = 0, 0
	if !q.paused {
		n := q.grantable(min(want.Max, q.states[engine.Ready].n))
		a.queue, a.left = q.name, n
		g.Messages = a.leases(n)
		i, worker := 0, ""
		for bytes, alone := 0, false; i < n && bytes < engine.AnswerBytes && !alone; i++ {
			l, m := &g.Messages[i], q.nextReady()
			if alone = m.alone(); alone && i > 0 {
				break
			}
			if w := want.TakerOf(i).Worker; w != worker {
				worker = strings.Clone(w) // what is kept must not retain the caller's memory
			}
			q.hold(m, want.TTR, worker, a, l)
			bytes += len(l.Body)
		}
		g.Messages = g.Messages[:i]
		q.settings.Granted(i)
		if q.states[engine.Ready].n > 0 {
			g.More = q.grantable(1) > 0
			g.Held = !g.More
		}
	}
	next := q.next()
	if !g.More {
		g.NextDue = rules.Instant(next)
	}
	// A client that was given a later NextDue would miss the end of these leases.
	q.hint = q.hint || next < q.told && !g.More
	q.told = next
	return g
}

// hold leases a ready message, and fills in the Lease.
func (q *queue) hold(m *message, ttr time.Duration, worker string, a *answer, l *engine.Lease) {
	q.take(m)
	m.attempt++
	m.holder = a.holder()
	m.holder.worker, m.holder.started = worker, q.ms
	q.put(m, engine.Leased, q.deadline(m, ttr))
	a.reserve(int(m.keyLen) + codec.TokenChars)
	a.info(&l.Info, m, true)
	l.Token = a.token(codec.Token{Queue: q.number, ID: m.id, Nonce: m.holder.nonce})
}

// deadline returns the deadline of a lease that starts now. It is never in the past.
func (q *queue) deadline(m *message, ttr time.Duration) int64 {
	return rules.Deadline(&m.kind.Policy, m.id, m.attempt, ttr, q.now)
}

// Claim leases the message that ref means if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	var lease engine.Lease
	err := e.refer(ctx, "claim", ref, func(q *queue) error {
		claimable := q.claimable
		if ref.IfState != engine.Gone {
			claimable = q.claimableIf
		}
		m, err := claimable(ref)
		if err != nil {
			return err
		}
		if err := q.settings.RefuseClaim(ref, q.now, q.leased()); err != nil {
			return err
		}
		q.settings.Granted(1)
		m.due = min(m.due, q.ms)
		if m.state == engine.Dead {
			m.setExpires(none)
		}
		q.hold(m, want.TTR, strings.Clone(want.Worker), &answer{queue: q.name, left: 1}, &lease)
		return nil
	})
	return lease, err
}

// claimable returns the message that ref names if it is due.
func (q *queue) claimable(ref engine.Ref) (*message, error) {
	m, err := q.findWaiting("claim", ref)
	switch {
	case err != nil:
		return nil, err
	case m.state == engine.Scheduled:
		return nil, engine.RefuseNotDue(ref, rules.Instant(m.due))
	case q.paused:
		return nil, engine.RefuseNotDue(ref, time.Time{})
	}
	return m, nil
}

// claimableIf returns the message that ref names if it is in the state IfState.
func (q *queue) claimableIf(ref engine.Ref) (*message, error) {
	m := q.find(ref)
	if m == nil {
		return nil, engine.RefuseClaimIf(ref, engine.Gone)
	}
	if m.state == engine.Dead && ref.IfState == engine.Dead && q.byKey(m.key()) != nil {
		return nil, engine.RefuseTaken(ref)
	}
	return m, engine.RefuseClaimIf(ref, m.state)
}
