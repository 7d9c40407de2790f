package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// expireMost is how many messages past their expiry one want drops at most before
// it answers that there is more.
const expireMost = 10_000

// Lease hands out what is due. Leases that stay in this process are not waited
// for: should they be lost in a crash, so is the process that held them.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	var g engine.Grant
	err := e.do(ctx, "lease", func(now clock, p *pending) error {
		g = engine.Grant{Now: instant(now.ms), Queues: make([]engine.Granted, len(wants))}
		for i := range wants {
			if err := ctx.Err(); err != nil && i > 0 {
				g.Queues[i].Err = &engine.Error{Op: "lease", Queue: wants[i].Queue, Err: err}
				continue
			}
			if err := e.leaseWant(now, p, &wants[i], &g.Queues[i], &g.Now); err != nil {
				if e.store.failed() != nil {
					return err
				}
				g.Queues[i].Err = &engine.Error{Op: "lease", Queue: wants[i].Queue, Err: err}
			}
		}
		return nil
	})
	if err != nil {
		return engine.Grant{}, err
	}
	return g, nil
}

func (e *Engine) leaseWant(now clock, p *pending, w *engine.Want, g *engine.Granted, shown *time.Time) error {
	q := e.queue(w.Queue)
	if q == nil {
		return nil
	}
	mine := pending{store: e.store}
	err := q.lease(now, &mine, w, g, shown)
	if w.Remote {
		p.batches = append(p.batches, mine.batches...)
	} else {
		for _, a := range mine.batches {
			e.tail <- a
		}
	}
	p.sees = max(p.sees, mine.sees)
	p.hints = append(p.hints, mine.hints...)
	return err
}

func (q *queue) lease(now clock, p *pending, w *engine.Want, g *engine.Granted, shown *time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, err := q.catchUp(now, p)
	if err != nil {
		return err
	}
	if at := instant(now.ms); at.After(*shown) {
		*shown = at
	}
	defer func() {
		g.Expired, g.Died = q.expired, q.died
		q.expired, q.died = 0, 0
	}()
	if q.paused(now.ms) {
		q.told = q.pause
		if q.pause != forGood {
			g.NextDue = instant(q.pause)
		}
		return nil
	}
	c := q.begin(now, 1)
	if w.Max > 1 {
		c.split()
	}
	before, bytes := q.expired, 0
	for q.expired-before < expireMost {
		if err := q.fill(now.ms); err != nil {
			return q.giveUp(c, err)
		}
		room := max(1, w.Max) - len(g.Messages)
		if room <= 0 || bytes >= engine.AnswerBytes {
			break
		}
		heads := q.near.take(room)
		if len(heads) == 0 {
			break
		}
		read, err := q.readHeads(heads)
		if err != nil {
			return q.giveUp(c, err)
		}
		for i := range heads {
			at, r, err := heads[i].position, read[i].record, read[i].err
			switch {
			case bytes >= engine.AnswerBytes:
				q.near.put(at, heads[i].priority, heads[i].seq)
			case err != nil:
				q.e.damaged(q, at.id, err)
				continue
			case r == nil || r.dead || r.due != at.at:
				q.e.damaged(q, at.id, errors.New("its due entry leads nowhere and is removed"))
				err = c.dequeue(at)
			case r.expired(now.ms):
				err = c.expire(r)
			default:
				if err = q.readBody(q.e.store.db, r); err != nil {
					q.e.damaged(q, at.id, err)
					continue
				}
				bytes += len(r.Body)
				p.sees = max(p.sees, heads[i].seq)
				var l engine.Lease
				if l, err = c.handOut(r, w); err == nil {
					g.Messages = append(g.Messages, l)
				}
			}
			if err != nil {
				return q.giveUp(c, err)
			}
		}
	}
	if err := c.commit(p); err != nil {
		return err
	}
	p.hints = nil // this answer says it all
	if g.More = len(q.near.ready) > 0 || q.expired-before >= expireMost; g.More {
		q.told = forGood // somebody else may have been told otherwise
		return nil
	}
	next := int64(forGood)
	if at, ok := q.near.next(); ok {
		next = at
	}
	if at, ok := q.leases.next(); ok {
		next = min(next, at)
	}
	q.told = next
	if next != forGood {
		g.NextDue = instant(next)
	}
	return nil
}

// giveUp abandons a change that has taken messages out of memory: they are read
// anew from disk.
func (q *queue) giveUp(c *change, err error) error {
	c.abandon()
	q.near = newNear(q.near.now)
	q.moveLoadedTo(q.mark)
	return err
}

// handOut leases a waiting message that is due.
func (c *change) handOut(r *record, w *engine.Want) (engine.Lease, error) {
	ttr := w.TTR
	if ttr <= 0 {
		ttr = r.TTR
	}
	l := &lease{
		id: r.id, deadline: c.now.after(ttr), token: newNonce(), attempt: r.attempt + 1, remote: w.Remote,
		known: true, apart: r.apart, key: r.key,
	}
	if err := errors.Join(c.dequeue(r.position()), c.lease(l)); err != nil {
		return engine.Lease{}, err
	}
	return engine.Lease{
		Info:  c.q.leasedInfo(r, l, c.now.ms),
		Token: token{c.q.num, r.id, l.token}.String(),
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
	var l engine.Lease
	err := e.do(ctx, "claim", func(now clock, p *pending) error {
		q := e.queue(ref.Queue)
		if q == nil {
			return refErr("claim", ref, engine.ErrNotFound, "")
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
	return l, err
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
	r, err := c.find(ref)
	switch {
	case err != nil:
	case r == nil || r.dead:
		err = refErr("claim", ref, engine.ErrNotFound, "")
	case q.leases.byID[r.id] != nil:
		err = refErr("claim", ref, engine.ErrLeased, "a worker has it")
	case r.due > now.ms:
		err = refErr("claim", ref, engine.ErrNotDue, "it is due at "+instant(r.due).Format(timeForm))
	case q.paused(now.ms):
		err = refErr("claim", ref, engine.ErrNotDue, "the queue is paused")
	}
	if err == nil {
		r, err = q.readMessage(q.e.store.db, r.id, true)
	}
	if err != nil {
		return errors.Join(err, c.commit(p)) // what expired is gone all the same
	}
	if *l, err = c.handOut(r, w); err != nil {
		c.abandon()
		return err
	}
	return c.commit(p)
}

const timeForm = "2006-01-02T15:04:05.000Z"

// find returns the message that ref names, by key the live one, or nil. One past
// its expiry is dropped and not found.
func (c *change) find(ref engine.Ref) (*record, error) {
	id := ref.ID
	if id == 0 {
		if ref.Key == "" {
			return nil, nil
		}
		k, err := c.key(ref.Key)
		if err != nil || k.id == 0 {
			return nil, err
		}
		id = k.id
	}
	r, err := c.message(id)
	if err != nil || r == nil {
		return nil, err
	}
	if c.q.leases.byID[id] == nil && r.expired(c.now.ms) {
		return nil, c.expire(r)
	}
	return r, nil
}
