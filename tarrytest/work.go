package tarrytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
)

// mostHandled bounds what one call has handled, so that a message that always comes back does
// not hang the test.
var mostHandled = 100_000

// patience is how long a call waits before it logs what it waits for.
const patience = 10 * time.Second

// endOfTime is later than all due times.
var endOfTime = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// Worked counts the messages that a worker has handled, by what became of them.
type Worked struct {
	Acked   int // handled, or dropped by a guard
	Retried int // failed; due again after the backoff
	Snoozed int
	Dead    int // failed for good, or buried
}

// Work runs w until nothing of its queues is due, and nothing that was leased from them is
// still being handled. Messages that are due later, such as retries, stay. A worker runs once:
// each call needs a new one. Its client must be c, or another on c.Engine or its server.
func (c *Client) Work(ctx context.Context, w *tarry.Worker) Worked {
	c.t.Helper()
	return c.work(ctx, w, c.Now())
}

// WorkAll is Work, but moves the clock to the next due time of the worker's queues again and
// again, until nothing is left in them. With a schedule, which never ends, it fails: use Start
// and Advance.
func (c *Client) WorkAll(ctx context.Context, w *tarry.Worker) Worked {
	c.t.Helper()
	return c.work(ctx, w, endOfTime)
}

func (c *Client) work(ctx context.Context, w *tarry.Worker, until time.Time) Worked {
	c.t.Helper()
	before := c.store.sum(w.Queues())
	r := c.run(ctx, w)
	err := c.play([]*running{r}, until, before.leased+mostHandled)
	if err = errors.Join(err, r.end()); err != nil {
		c.t.Errorf("tarrytest: Work: %v", err)
	}
	return c.store.sum(r.queues).since(before)
}

// Start runs w until the test ends. From then on Advance waits until w has done all that is
// due; Advance(0) does for what was pushed since.
func (c *Client) Start(ctx context.Context, w *tarry.Worker) {
	r := c.run(ctx, w)
	c.mu.Lock()
	c.started = append(c.started[:len(c.started):len(c.started)], r)
	c.mu.Unlock()
	c.t.Cleanup(func() {
		if err := r.end(); err != nil {
			c.t.Errorf("tarrytest: Start: %v", err)
		}
	})
}

// running is a worker that runs.
type running struct {
	queues []string
	stop   context.CancelFunc
	over   chan struct{} // closed when it has ended, with err
	err    error
}

func (c *Client) run(ctx context.Context, w *tarry.Worker) *running {
	r := &running{queues: w.Queues(), over: make(chan struct{})}
	ctx, r.stop = context.WithCancel(ctx)
	go func() {
		r.err = w.Run(ctx)
		close(r.over)
		c.store.wake()
	}()
	return r
}

// end ends the worker.
func (r *running) end() error {
	r.stop()
	<-r.over
	if errors.Is(r.err, tarry.ErrClosed) { // the test has closed its client
		return nil
	}
	return r.err
}

func (r *running) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// play has workers do what is due, and moves the clock from due time to due time up to until.
func (c *Client) play(rs []*running, until time.Time, most int) error {
	for {
		if err := c.finish(rs, most); err != nil {
			return err
		}
		next := c.store.next(rs)
		if next.IsZero() || next.After(until) {
			return nil
		}
		c.moveTo(next)
	}
}

// finish waits until the workers have nothing to do. What they have done may have changed their
// next due time, so they look again, until they find nothing.
func (c *Client) finish(rs []*running, most int) error {
	for idle := false; ; idle = true {
		before := c.store.leased(rs)
		for _, r := range rs {
			c.store.ask(r.queues)
		}
		for _, r := range rs {
			if err := c.await(r, most); err != nil {
				return err
			}
		}
		if idle && c.store.leased(rs) == before {
			return nil
		}
	}
}

// await waits until a worker has nothing to do.
func (c *Client) await(r *running, most int) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		waits, changed := c.store.busy(r.queues)
		switch {
		case waits == "":
			return nil
		case c.store.leased([]*running{r}) > most:
			return fmt.Errorf("there is always something due, after %d messages: %s", mostHandled, waits)
		case r.ended():
			return fmt.Errorf("the worker has ended before all was done: %s", waits)
		}
		select {
		case <-changed:
		case <-late.C:
			c.t.Logf("tarrytest: still waiting: %s", waits)
		}
	}
}
