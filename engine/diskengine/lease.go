package diskengine

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"syscall"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// Lease hands out due messages. The leases are written when it answers, but not synced. So an
// attempt counts even if its handler kills the process.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	g := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	err := e.do(ctx, "lease", func(c *call) error {
		defer func() { g.Now = rules.Instant(c.ms) }()
		first, left := e.leaseFirst(len(wants)), e.mostLeased()
		for n := range wants {
			i := (first + n) % len(wants)
			w, to := &wants[i], &g.Queues[i]
			if to.Err = w.Check(); to.Err != nil {
				continue
			}
			had := left > 0
			err := c.lease(w, left, to)
			switch {
			case err == nil:
				if left -= c.handed + len(to.Messages)*infoBytes; had && left <= 0 {
					e.leaseTurn.Add(1) // a want that gets nothing now gets something soon
				}
			case c.ofOneQueue(err):
				e.giveBack(ctx, *to)
				*to = engine.Granted{Err: wrap("lease", err)}
			default:
				return err
			}
		}
		return nil
	})
	if err != nil {
		e.giveBack(ctx, g.Queues...)
		e.keepCounts(wants, g.Queues)
		return engine.Grant{}, err
	}
	for i := range g.Queues {
		if q := &g.Queues[i]; !q.NextDue.IsZero() && !q.NextDue.After(g.Now) {
			q.NextDue = g.Now.Add(time.Millisecond)
		}
	}
	return g, nil
}

// leaseFirst is which of n wants is answered first: another one each time that a call got all
// the bytes that it may have. Multiples of the golden ratio are spread evenly, also among
// callers with different wants (Knuth, The Art of Computer Programming, 6.4).
func (e *Engine) leaseFirst(n int) int {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	first, _ := bits.Mul64(e.leaseTurn.Load()*golden, uint64(n))
	return int(first)
}

// mostLeased is how many bytes one Lease may hand out, over all queues; the last message may
// exceed it.
func (e *Engine) mostLeased() int { return int(max(engine.AnswerBytes, e.cfg.MemoryBytes/8)) }

// infoBytes is about how many bytes a message takes in an answer beside its content.
const infoBytes = 512

// ofOneQueue reports whether an error is of one queue, which could not be read, and not of the
// whole call.
func (c *call) ofOneQueue(err error) bool {
	var ours *engine.Error
	return !errors.As(err, &ours) && c.ctx.Err() == nil && c.e.store.Failed() == nil
}

// giveBack releases messages that were leased for a caller that has left; otherwise the leases
// would end at their deadlines. If the context is over and the disk does not answer soon, it
// goes on in the background.
func (e *Engine) giveBack(ctx context.Context, granted ...engine.Granted) {
	var s []engine.Settlement
	for i := range granted {
		s = append(s, engine.Releases(granted[i].Messages)...)
	}
	if len(s) == 0 || e.made.Left() >= calls.MaxLeft {
		return
	}
	_, _, _ = calls.Make(ctx, &e.made, giveBackWait, func([]engine.Settled, error) {},
		func() ([]engine.Settled, error) { return e.Settle(context.Background(), s) }) // a store that has stopped has no leases
}

// keepCounts keeps, for the next lease, the counts of a lease if nobody got its answer.
func (e *Engine) keepCounts(wants []engine.Want, granted []engine.Granted) {
	e.store.Mu.Lock()
	defer e.store.Mu.Unlock()
	for i := range granted {
		if q := e.queues[wants[i].Queue]; q != nil {
			q.expired += granted[i].Expired
			q.died += granted[i].Died
		}
	}
}

// giveBackWait is how long a caller that has left waits until its leases are released durably.
const giveBackWait = 100 * time.Millisecond

// lease answers one want with messages of so many bytes, which the last one may exceed; with
// none if bytes is not above 0.
func (c *call) lease(w *engine.Want, bytes int, g *engine.Granted) error {
	c.handed, c.alone = 0, false
	return c.step(func() error {
		q, err := c.visit(w.Queue, false)
		if q == nil || err != nil {
			return err
		}
		c.written = true
		c.syncedTo = max(c.syncedTo, c.e.fresh.lastBefore(c.ms))
		// Dead messages, remembered keys and finished messages past their time go some at a time: due messages do
		// not wait.
		for _, drop := range [...]func(*call, *queue) error{(*call).forgetOver, (*call).dropDead, (*call).dropListed} {
			if err := drop(c, q); err != nil && err != errYield {
				return err
			}
		}
		if err := c.grant(q, w, bytes, g); err != nil {
			return err
		}
		g.Expired += q.expired
		g.Died += q.died
		q.expired, q.died = 0, 0
		return nil
	})
}

// grant leases due messages, as many as may be leased.
func (c *call) grant(q *queue, w *engine.Want, bytes int, g *engine.Granted) error {
	if q.pause == 0 {
		if err := c.advance(q, min(store.StepItems, w.Max)); err != nil {
			return err
		}
		if q.room() < w.Max-len(g.Messages) {
			if err := c.makeRoom(); err != nil {
				return err
			}
		}
		if err := c.handOut(q, w, min(engine.AnswerBytes, bytes), g); err != nil {
			return err
		}
		if err := c.advance(q, 1); err != nil { // whether there are more
			return err
		}
		if q.ready > 0 && len(q.heap) > 0 {
			g.More = q.grantable(c.now, 1) > 0
			g.Held = !g.More
		}
	}
	next, err := c.nextOf(q)
	if err != nil {
		return err
	}
	if !g.More {
		g.NextDue = rules.Instant(next)
	}
	// A caller that got a later instant, here or by another client, would not look after these
	// leases in time.
	if next < q.nextDue && !g.More {
		c.hints = append(c.hints, q.name)
	}
	q.nextDue, q.hint = next, false
	c.e.weigh(q)
	return nil
}

// handOut leases messages. Those leased in an earlier run of the step count.
func (c *call) handOut(q *queue, w *engine.Want, room int, g *engine.Granted) error {
	room -= c.handed
	var aside []store.Item // taken off the heap, and put back at the end
	var lack error
	most := q.grantable(c.now, w.Max-len(g.Messages))
	if c.alone {
		most = 0
	}
	early := q.front.Before(memtable.Position{At: c.ms + 1}) && len(q.heap) < c.e.room()
	for n := 0; len(aside) < most && n < store.StepItems && room > 0; n++ {
		t, m, ok, err := c.top(q, c.reader.Whole)
		if !ok && err == nil {
			break
		}
		switch {
		case err == store.ErrLack:
			lack = err
			aside = append(aside, t)
			q.drop()
			continue
		case err == errYield, errors.Is(err, syscall.EIO):
			lack = cmp.Or(lack, err)
		case err != nil:
			c.damaged(q, t.ID, err)
			q.leaves(t.Due, t.ID) // it is not handed out
			continue
		case m.past(c.ms):
			c.expire(&m)
			continue
		case early && t.Priority > q.least: // one behind front may have to go out first
			lack = cmp.Or(lack, errYield)
			aside = append(aside, t)
		case lack != nil: // one that goes out before it must be read first
			aside = append(aside, t)
			continue
		case len(g.Messages) > 0 && m.isolated():
			aside, most = append(aside, t), 0
		default:
			alone, bytes := m.isolated(), len(m.content)
			l, err := c.hold(&m, w, w.TakerOf(len(g.Messages)).Worker)
			if err != nil {
				c.damaged(q, t.ID, err)
				q.leaves(t.Due, t.ID)
				continue
			}
			if g.Messages == nil {
				g.Messages = make([]engine.Lease, 0, min(most, 1+len(q.heap), store.StepItems))
			}
			g.Messages = append(g.Messages, l)
			c.alone, c.handed, room = alone, c.handed+bytes, room-bytes
			q.settings.Granted(1)
			if most--; alone {
				most = 0
			}
			continue
		}
		break
	}
	for i := range aside {
		q.take(aside[i])
	}
	if lack == nil && most > 0 && room > 0 && len(q.heap) > 0 && q.ready > 0 {
		return errYield
	}
	return lack
}

// hold leases a pending message to a worker. It fails, and changes nothing, if the content means
// nothing.
func (c *call) hold(m *message, w *engine.Want, worker string) (out engine.Lease, err error) {
	if out.Info, err = c.brief(m, true); err != nil {
		return out, err
	}
	if m.lease != nil { // it has lapsed: write that down first
		c.become(m, m.base(), m.content)
	}
	q := m.q
	q.leaves(m.Due, m.id)
	m.Attempt++
	l := lease{
		ID: uint64(m.id), Queue: q.num, Due: m.Due, Deadline: rules.Deadline(&m.Policy, m.id, m.Attempt, w.TTR, c.now),
		Epoch: c.e.store.Epoch, Attempt: m.Attempt, Remote: w.Remote, Given: true, Nonce: c.e.nonce(c.ms),
	}
	know(&l, m)
	setSpot(&l, m.at)
	m.lease = q.lease(&l)
	q.leases.SetWorker(m.lease, worker)
	c.writeLease(m.lease)
	c.touch(q)
	out.State, out.Attempt, out.Deadline, out.Worker, out.Started = engine.Leased, m.Attempt, rules.Instant(l.Deadline), m.worker(), started(&l)
	out.Token = codec.Token{Queue: uint64(q.num), ID: m.id, Nonce: l.Nonce}.String()
	return out, nil
}

// writeLease writes a lease to the log.
func (c *call) writeLease(l *lease) {
	c.group = c.e.recordOf(l).Append(c.group)
}

// recordOf is the record of a lease for the log.
func (e *Engine) recordOf(l *lease) *record.Lease {
	r := &record.Lease{ID: engine.ID(l.ID), From: record.Spot{Table: l.Table, At: l.Pos}, Deadline: l.Deadline, Attempt: l.Attempt,
		Lapsed: l.HasLapsed(), Worker: e.leases.Worker(l)}
	if l.Remote {
		r.Remote, r.Nonce = true, l.Nonce
	}
	return r
}

// roomEvery is how soon a queue looks again that found the table of leases full.
const roomEvery = time.Second

// nextOf is when a Lease may give something next.
func (c *call) nextOf(q *queue) (int64, error) {
	if q.pause != 0 {
		return q.pause, nil
	}
	next := q.nextEnd()
	held := q.ready > 0 && len(q.heap) > 0
	if held {
		at := q.settings.NextAllowed(c.now)
		if at <= c.ms && !q.full() {
			return c.ms, nil
		}
		if at > c.ms {
			next = min(next, at)
		}
	}
	if q.ready > 0 && q.room() == 0 { // others may make room
		next = min(next, c.ms+roomEvery.Milliseconds())
	}
	due, err := c.next(q)
	if held && due <= c.ms { // there are more than the heap has room for, and they are held back too
		due = never
	}
	return max(c.ms+1, min(next, due)), err
}
