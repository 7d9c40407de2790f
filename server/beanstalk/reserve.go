package beanstalk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// waitMost bounds a wait. Then it begins anew.
const waitMost = time.Hour

// reserveWithin carries out reserve-with-timeout.
func (c *conn) reserveWithin(a args) { c.reserve(time.Now().Add(a.delay)) }

// reserve reserves a job and waits for one until end; zero: for ever. With several tubes it
// first takes the best job that is ready.
func (c *conn) reserve(end time.Time) {
	c.countWorker()
	for _, t := range c.watch {
		if !c.may(access.Work, t.name) {
			c.fail(errForbidden)
			return
		}
	}
	readOn := c.ahead.started || c.in.buffered() < mostAhead
	for first := true; ; first = false {
		wait, otherwise := c.longestWait(end)
		if wait <= 0 || first && len(c.watch) > 1 {
			switch got, err := c.leaseNow(); {
			case got:
				return
			case err != nil:
				c.fail(err)
				return
			case wait <= 0:
				c.say(otherwise)
				return
			}
		}
		if c.flush() != nil {
			return
		}
		if !readOn {
			if hungUp(c.nc) {
				c.say("TIMED_OUT")
				return
			}
			wait = min(wait, fullWait)
		}
		switch got, gone, err := c.leaseWithin(wait, readOn); {
		case got:
			return
		case errors.Is(gone, io.EOF):
			c.say("TIMED_OUT")
			return
		case errors.Is(gone, errFull) && !c.stopping.Load():
			readOn = false
		case gone != nil || c.stopping.Load():
			c.stop()
			return
		case err != nil:
			c.fail(err)
			return
		}
	}
}

// longestWait returns how long to wait for a job, and what is answered then if none came.
func (c *conn) longestWait(end time.Time) (wait time.Duration, otherwise string) {
	wait = waitMost
	if !end.IsZero() {
		wait, otherwise = min(wait, time.Until(end)), "TIMED_OUT"
	}
	if first := c.held.soonest(); !first.IsZero() {
		if left := time.Until(first.Add(-margin)); left <= max(wait, 0) {
			return left, "DEADLINE_SOON"
		}
	}
	return wait, otherwise
}

// countWorker counts the connection as a worker.
func (c *conn) countWorker() {
	if !c.worker {
		c.worker = true
		c.s.counts.workers.Add(1)
	}
}

// leaseWithin waits for a job and answers with it. gone says why the wait ended early.
func (c *conn) leaseWithin(wait time.Duration, readOn bool) (got bool, gone, err error) {
	if c.leaser == nil {
		if c.leaser, err = c.s.c.Leaser(names(c.watch)); err != nil {
			return false, nil, err
		}
	}
	c.waiting(1)
	var leased tarry.LeasedMessages
	var asked time.Time
	gone = c.await(readOn, func(ctx context.Context) {
		asked = time.Now()
		leased, err = c.leaser.Lease(ctx, tarry.LeaseRequest{Max: 1, Wait: wait, LeaseOptions: tarry.LeaseOptions{Worker: c.name()}})
	})
	c.waiting(-1)
	if len(leased.Messages) == 0 {
		return false, gone, err
	}
	l := &leased.Messages[0]
	allowed := c.s.cfg.Guard == nil || c.known() && c.may(access.Work, l.Queue)
	if allowed && !c.stopping.Load() {
		c.reserved(l, asked.Add(leased.Waited))
		return true, gone, nil
	}
	if _, err = c.s.settle(c.ctx, engine.Settlement{Token: l.Token, Do: engine.Release}); err == nil {
		err = errForbidden
	}
	return false, gone, err
}

// waiting counts the connection as waiting, or no longer.
func (c *conn) waiting(n int64) {
	c.s.counts.waiting.Add(n)
	for _, t := range c.watch {
		t.waiting.Add(n)
	}
}

// leaseNow takes the best job that is ready, if any, and answers with it.
func (c *conn) leaseNow() (bool, error) {
	tubes := c.watch
	if len(tubes) > 1 {
		first, err := c.s.c.Peek(c.ctx, names(tubes))
		if err != nil {
			return false, err
		}
		if tubes = inOrder(tubes, first); len(tubes) == 0 {
			return false, nil
		}
	}
	for _, t := range tubes {
		asked := time.Now()
		g, err := c.s.c.LeaseNow(c.ctx, []engine.Want{{Queue: t.name, Max: 1, Worker: c.name()}})
		if err == nil {
			err = g.Queues[0].Err
		}
		if err != nil {
			return false, err
		}
		if got := g.Queues[0].Messages; len(got) > 0 {
			c.reserved(&got[0], asked)
			return true, nil
		}
	}
	return false, nil
}

// inOrder returns the tubes that have a ready job, given their first ones: the best first.
func inOrder(tubes []*tube, first []engine.Info) []*tube {
	at := make([]int, 0, len(tubes))
	for i := range first {
		if first[i].ID != 0 {
			at = append(at, i)
		}
	}
	slices.SortFunc(at, func(a, b int) int {
		x, y := &first[a], &first[b]
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), x.Due.Compare(y.Due), cmp.Compare(x.ID, y.ID))
	})
	ready := make([]*tube, len(at))
	for i, j := range at {
		ready[i] = tubes[j]
	}
	return ready
}

// reserved answers with a job that was leased by a call made at asked, and holds it.
func (c *conn) reserved(l *engine.Lease, asked time.Time) {
	j := &job{id: l.ID, token: l.Token, due: l.Due, ttr: l.TTR, until: asked.Add(l.TTR), tube: c.s.tubes.known(l.Queue)}
	c.sayJob("RESERVED ", l.ID, l.Body)
	j.answer = c.sent + uint64(len(c.out))
	c.held.add(j)
}

// reserveJob carries out reserve-job.
func (c *conn) reserveJob(a args) {
	id := a.id
	var l engine.Lease
	var asked time.Time
	_, err := c.withJob(id, access.Work, func(m *engine.Info) error {
		if m.State == engine.Leased {
			return engine.ErrNotFound
		}
		if m.State == engine.Scheduled {
			delay := m.Due.Sub(m.Created)
			c.s.notes.change(id, func(n *note) { n.keepDelay(delay) })
		}
		var err error
		asked = time.Now()
		ref := engine.Ref{Queue: m.Queue, ID: id, IfState: m.State}
		l, err = c.s.c.Claim(c.ctx, ref, tarry.LeaseOptions{Worker: c.name()})
		return err
	})
	if err != nil {
		c.fail(err)
		return
	}
	c.countWorker()
	c.reserved(&l, asked)
}

// withJob calls do with a job that may be changed by the scope, and returns its queue. It looks
// at the job again if that changed meanwhile.
func (c *conn) withJob(id engine.ID, scope access.Scope, do func(*engine.Info) error) (queue string, err error) {
	for range 3 {
		m, err := c.job(id, scope)
		if err != nil {
			return m.Queue, err
		}
		if err = do(&m); !errors.Is(err, engine.ErrStale) {
			return m.Queue, err
		}
	}
	return "", engine.ErrNotFound
}

// job returns a job as it is, if the connection has one of the rights.
func (c *conn) job(id engine.ID, scope access.Scope) (engine.Info, error) {
	queue, err := c.queueOf(id)
	if err != nil {
		return engine.Info{}, err
	}
	m, err := c.s.c.Get(c.ctx, engine.Ref{Queue: queue, ID: id})
	if err == nil && m.State == engine.Finished {
		err = engine.ErrNotFound
	}
	if err == nil {
		err = c.allows(scope, m.Queue)
	}
	return m, err
}

// queueOf returns the queue of a job.
func (c *conn) queueOf(id engine.ID) (string, error) {
	if id == 0 {
		return "", engine.ErrNotFound
	}
	if j := c.held.find(id); j != nil {
		return j.tube.name, nil
	}
	queues, err := c.s.c.Find(c.ctx, []engine.ID{id})
	if err != nil {
		return "", err
	}
	if queues[0] == "" {
		return "", engine.ErrNotFound
	}
	return queues[0], nil
}
