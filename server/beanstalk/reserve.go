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
func (c *conn) reserveWithin(a args) (string, error) { return c.reserve(time.Now().Add(a.delay)) }

// reserve reserves a job and waits for one until end; zero: for ever. With several tubes it
// first takes the best job that is ready.
func (c *conn) reserve(end time.Time) (string, error) {
	c.countWorker()
	for _, t := range c.watch {
		if err := c.allows(access.Work, t.name); err != nil {
			return "", err
		}
	}
	for first := true; ; first = false {
		wait, otherwise := c.longestWait(end)
		if wait <= 0 || first && len(c.watch) > 1 {
			if got, err := c.leaseNow(); got || err != nil {
				return "", err
			}
		}
		if wait <= 0 {
			return otherwise, nil
		}
		if c.flush() != nil {
			return "", nil
		}
		switch got, hungUp, err := c.leaseWithin(wait); {
		case got || c.stopping():
			return "", nil
		case hungUp:
			return "TIMED_OUT", nil
		case err != nil:
			return "", err
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

// leaseWithin waits for a job and answers with it.
func (c *conn) leaseWithin(wait time.Duration) (got, hungUp bool, err error) {
	if c.leaser == nil {
		if c.leaser, err = c.s.c.Leaser(names(c.watch)); err != nil {
			return false, false, err
		}
	}
	c.waiting(1)
	var leased tarry.LeasedMessages
	var asked time.Time
	hungUp = c.await(func(ctx context.Context) {
		asked = time.Now()
		leased, err = c.leaser.Lease(ctx, tarry.LeaseRequest{Max: 1, Wait: wait, LeaseOptions: tarry.LeaseOptions{Worker: c.name()}})
	})
	c.waiting(-1)
	if len(leased.Messages) == 0 {
		return false, hungUp, err
	}
	l := &leased.Messages[0]
	if !c.stopping() && c.known() && c.allows(access.Work, l.Queue) == nil {
		c.reserved(l, asked.Add(leased.Waited))
		return true, false, nil
	}
	if _, err = c.s.settle(c.ctx, engine.Settlement{Token: l.Token, Do: engine.Release}); err == nil {
		err = errForbidden
	}
	return false, false, err
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
	queues := names(c.watch)
	if len(queues) > 1 {
		first, err := c.s.c.Peek(c.ctx, queues)
		if err != nil {
			return false, err
		}
		queues = inOrder(first)
	}
	for _, queue := range queues {
		asked := time.Now()
		g, err := c.s.c.LeaseNow(c.ctx, []engine.Want{{Queue: queue, Max: 1, Worker: c.name()}})
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

// inOrder returns the queues that have a ready job, given their first ones: the best first.
func inOrder(first []engine.Info) (queues []string) {
	slices.SortFunc(first, func(a, b engine.Info) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
	})
	for i := range first {
		if first[i].ID != 0 { // else none is ready
			queues = append(queues, first[i].Queue)
		}
	}
	return queues
}

// reserved answers with a job that was leased by a call made at asked, and holds it.
func (c *conn) reserved(l *engine.Lease, asked time.Time) {
	j := &job{id: l.ID, token: l.Token, due: l.Due, ttr: l.TTR, until: asked.Add(l.TTR), tube: c.s.tubes.known(l.Queue)}
	c.sayJob("RESERVED ", l.ID, l.Body)
	j.answer = c.sent + uint64(len(c.out))
	c.held.add(j)
}

// reserveJob carries out reserve-job.
func (c *conn) reserveJob(a args) (string, error) {
	var l engine.Lease
	var asked time.Time
	_, err := c.withJob(a.id, access.Work, func(m *engine.Info) (err error) {
		if m.State == engine.Leased {
			return engine.ErrNotFound
		}
		if m.State == engine.Scheduled {
			c.s.notes.change(m.ID, func(n *note) { n.keepDelay(m) })
		}
		asked = time.Now()
		l, err = c.s.c.Claim(c.ctx, engine.Ref{Queue: m.Queue, ID: m.ID, IfState: m.State}, tarry.LeaseOptions{Worker: c.name()})
		return err
	})
	if err != nil {
		return "", err
	}
	c.countWorker()
	c.reserved(&l, asked)
	return "", nil
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
	switch {
	case err != nil:
		return "", err
	case queues[0] == "":
		return "", engine.ErrNotFound
	}
	return queues[0], nil
}

// watchAfter is how long a wait lasts before the client is watched. Most waits are shorter, and so
// need no goroutine.
const watchAfter = 5 * time.Millisecond

// watcher notices that the client of a waiting connection hangs up.
type watcher struct {
	timer  *time.Timer     // begins to watch, on a goroutine of its own
	ctx    context.Context // of the waits until the client hangs up
	cancel context.CancelFunc
	hungUp chan bool // what the goroutine has found
}

func (w *watcher) init(c *conn) {
	w.ctx, w.cancel = context.WithCancel(c.open)
	w.hungUp = make(chan bool, 1)
	w.timer = time.AfterFunc(time.Hour, func() { w.hungUp <- c.watchClient() })
	w.timer.Stop()
}

// await calls wait with a context that ends when the client hangs up or the connection is to
// end. It reports whether the client has hung up.
func (c *conn) await(wait func(context.Context)) bool {
	w := &c.watcher
	w.timer.Reset(watchAfter)
	wait(w.ctx)
	if w.timer.Stop() {
		return false
	}
	c.deadline(past) // wakes the goroutine
	hungUp := <-w.hungUp
	c.deadline(time.Time{})
	if hungUp {
		w.ctx, w.cancel = context.WithCancel(c.open)
	}
	return hungUp
}

// watchClient reports whether the client has hung up, and then ends the wait. It waits for that
// until the read deadline. Where the system does not tell, it reads on: then a client that sends
// more commands behind its wait is not watched any longer.
func (c *conn) watchClient() bool {
	gone, ok := awaitHangUp(c.nc)
	if !ok {
		n, err := c.nc.Read(c.in.space(maxLine))
		c.in.add(n)
		gone = errors.Is(err, io.EOF)
	}
	if gone {
		c.watcher.cancel()
	}
	return gone
}
