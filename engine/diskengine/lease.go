package diskengine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// expireMost is how many messages past their expiry one want drops at most before
// it answers that there is more.
const expireMost = 10_000

// Lease hands out what is due. Leases of other processes are waited for until they are
// written, so that they outlive this one, but not until they are synced. Those that
// stay in this process are not waited for: should they be lost in a crash, so is the
// process that held them.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	wants = slices.Clone(wants)
	var g engine.Grant
	late := func() {
		for i := range g.Queues {
			e.untell(wants[i].Queue, &g.Queues[i])
			e.giveBack(g.Queues[i].Messages)
		}
	}
	err := e.doOrElse(ctx, "lease", late, func(now clock, p *pending) error {
		g = engine.Grant{Now: instant(now.ms), Queues: make([]engine.Granted, len(wants))}
		l := leasing{e: e, now: now, wants: wants, grant: &g}
		err := l.run(ctx)
		l.leave(p)
		return err
	})
	if err != nil {
		return engine.Grant{}, err
	}
	return g, nil
}

// tell tells what was dropped and what died since a Lease last did.
func (q *queue) tell(g *engine.Granted) {
	g.Expired, g.Died = q.expired, q.died
	q.expired, q.died = 0, 0
}

// untell takes back what tell told somebody who has left.
func (e *Engine) untell(queue string, g *engine.Granted) {
	if g.Expired == 0 && g.Died == 0 {
		return
	}
	q := e.queue(queue)
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expired += g.Expired
	q.died += g.Died
}

// handOut leases a waiting message that is due, taken out of memory already or not.
func (c *change) handOut(r *record, w *engine.Want, taken bool) (engine.Lease, error) {
	ttr := w.TTR
	if ttr <= 0 {
		ttr = r.TTR
	}
	l := &lease{
		id: r.id, deadline: c.now.after(ttr), token: token.NewNonce(), attempt: r.attempt + 1, remote: w.Remote,
		known: !r.remembered(), apart: r.apart, key: r.key,
	}
	if err := errors.Join(c.leave(nearOp{position: r.position(), taken: taken}), c.lease(l)); err != nil {
		return engine.Lease{}, err
	}
	c.remote = c.remote || w.Remote
	return engine.Lease{
		Info:  c.q.leasedInfo(r, l, c.now.ms),
		Token: token.Token{Queue: uint64(c.q.num), ID: r.id, Nonce: l.token}.String(),
	}, nil
}

// leasedInfo describes a message under a lease.
func (q *queue) leasedInfo(r *record, l *lease, now int64) engine.Info {
	i := r.info(q.name, now)
	i.State, i.Attempt, i.Deadline = engine.Leased, l.attempt, instant(l.deadline)
	return i
}

// Claim leases one message if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	if err := ref.Check("claim"); err != nil {
		return engine.Lease{}, err
	}
	ref.IfState = engine.Gone // says nothing to a claim
	var l engine.Lease
	late := func() { e.giveBack([]engine.Lease{l}) }
	err := e.doOrElse(ctx, "claim", late, func(now clock, p *pending) error {
		q := e.queue(ref.Queue)
		if q == nil {
			return engine.Refuse("claim", ref, engine.ErrNotFound)
		}
		mine := pending{store: e.store}
		err := q.claim(now, &mine, ref, &want, &l)
		// What was decided before, such as a lapse, is in the last batch's way: the
		// answer waits for all but a lease that stays in this process.
		p.hints = append(p.hints, mine.hints...)
		p.sees = mine.sees
		if want.Remote || err != nil {
			p.batches = mine.batches
			return err
		}
		for _, a := range mine.batches {
			e.tail <- a
		}
		return nil
	})
	if err != nil {
		return engine.Lease{}, err
	}
	return l, nil
}

func (q *queue) claim(now clock, p *pending, ref engine.Ref, w *engine.Want, l *engine.Lease) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, err := q.catchUp(now, p)
	if err != nil {
		return err
	}
	p.see(q)
	c := q.begin(now, 1)
	r, err := c.find("claim", ref)
	switch {
	case err != nil:
	case r.due > now.ms:
		err = engine.RefuseNotDue(ref, instant(r.due))
	case q.paused(now.ms):
		err = engine.RefuseNotDue(ref, time.Time{})
	default:
		err = q.refuseClaim(ref, now)
	}
	if err == nil {
		err = q.readBody(q.e.store.db, r)
	}
	if err != nil {
		return errors.Join(err, c.commit(p)) // what expired is gone all the same
	}
	if *l, err = c.handOut(r, w, false); err != nil {
		c.abandon()
		return err
	}
	if err := c.commit(p); err != nil {
		return err
	}
	q.granted(1)
	return nil
}

// find returns the message that ref names, by key the live one, if it waits, and else
// what refuses op. One past its expiry is dropped; a lease that is over is ended.
func (c *change) find(op string, ref engine.Ref) (*record, error) {
	id := ref.ID
	if id == 0 {
		k, err := c.key(ref.Key)
		if err != nil || k.id == 0 {
			return nil, cmp.Or(err, engine.RefuseUnlessWaiting(op, ref, engine.Gone))
		}
		id = k.id
	}
	l, err := c.leased(id)
	if err != nil {
		return nil, err
	}
	r, err := c.message(id)
	var state engine.State
	switch {
	case err != nil || r == nil:
	case l != nil:
		state = engine.Leased
	case r.expired(c.now.ms):
		err = c.expire(r)
	default:
		state = r.state(c.now.ms)
	}
	if state.Live() {
		err = cmp.Or(err, engine.RefuseState(op, ref, state))
	}
	return r, cmp.Or(err, engine.RefuseUnlessWaiting(op, ref, state))
}
