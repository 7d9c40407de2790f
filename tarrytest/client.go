package tarrytest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// mostHandled bounds how many messages one call has handled at an instant, and at how many
// instants, so that a message that always comes back does not hang the test.
var mostHandled = 100_000

var errEndless = errors.New("there is always something due")

// endOfTime is later than due times, but that of schedules which are paused or have ended.
var endOfTime = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)

// Worked counts the messages that workers have handled, by what became of them. Schedules
// that fire are none.
type Worked struct {
	Acked   int // handled, or dropped by a guard
	Retried int // failed; due again after the backoff
	Snoozed int
	Dead    int // failed for good, or buried
}

// Client is a client of messages in memory, with a clock that the test moves. It is safe for
// concurrent use. For a client with a Config of its own, call tarry.New with Client.Engine.
type Client struct {
	*tarry.Client

	t     testing.TB
	store *store
}

// New returns a client that is closed when the test ends. Its clock starts at the present
// time, in whole milliseconds, and stands there.
func New(t testing.TB) *Client { return NewAt(t, time.Now()) }

// NewAt is New with a clock that starts at another time.
func NewAt(t testing.TB, start time.Time) *Client { return newClient(t, newStore(false, start)) }

// NewInBubble is New for a test inside a testing/synctest bubble. The clock is the bubble's:
// time.Sleep moves it too.
func NewInBubble(t testing.TB) *Client { return newClient(t, newStore(true, time.Time{})) }

func newClient(t testing.TB, s *store) *Client {
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := &Client{tarry.New(s, &tarry.Config{Logger: logger}), t, s}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error("tarrytest:", err)
		}
	})
	return c
}

// Now returns the time of the client's clock.
func (c *Client) Now() time.Time { return c.store.now() }

// Advance moves the clock by d; see AdvanceTo.
func (c *Client) Advance(d time.Duration) {
	c.t.Helper()
	c.AdvanceTo(c.Now().Add(d))
}

// AdvanceTo moves the clock to a later time. While workers run that Start started, it stops at
// each time at which they have something to do, and waits until it is done. Workers that the
// test runs otherwise learn of the new time, but AdvanceTo does not wait for them. In a bubble
// it waits for all. A handler must not call it.
func (c *Client) AdvanceTo(at time.Time) {
	c.t.Helper()
	switch now := c.Now(); {
	case at.Before(now):
		c.t.Errorf("tarrytest: the clock cannot go back from %s to %s", now, at)
	case c.store.bubble:
		time.Sleep(at.Sub(now))
		synctest.Wait()
	default:
		err := c.play(at)
		c.store.moveTo(at)
		if err = cmp.Or(err, c.play(at)); err != nil {
			c.t.Errorf("tarrytest: Advance: %v", err)
		}
	}
}

// Forget forgets what was pushed so far, for RequirePushed, RequireNothingPushed and Pushed.
// The messages stay.
func (c *Client) Forget() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	clear(c.store.records)
}

// Fail makes all pushes fail with err, until Fail(nil).
func (c *Client) Fail(err error) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.fails = err
}

// Work runs w until nothing of its queues is due, and nothing that was leased from them is
// still being handled, or until ctx ends, which fails the test. Messages that are due later,
// such as retries, stay. A worker runs once: each call needs a new one. Its client must be c,
// or another on c.Engine or its server.
func (c *Client) Work(ctx context.Context, w *tarry.Worker) Worked {
	c.t.Helper()
	return c.work(ctx, w, c.Now())
}

// WorkAll is Work, but moves the clock to the next due time of the worker's queues again and
// again, until nothing is left in them. With a schedule that never ends it fails: use Start
// and Advance.
func (c *Client) WorkAll(ctx context.Context, w *tarry.Worker) Worked {
	c.t.Helper()
	return c.work(ctx, w, endOfTime)
}

func (c *Client) work(ctx context.Context, w *tarry.Worker, until time.Time) (did Worked) {
	c.t.Helper()
	c.swapWorked(&did)
	end := c.run(ctx, w)
	if err := cmp.Or(c.play(until), ctx.Err()); err != nil {
		c.t.Errorf("tarrytest: Work: %v", err)
	}
	end()
	c.swapWorked(&did)
	return did
}

func (c *Client) swapWorked(w *Worked) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	*w, c.store.worked = c.store.worked, *w
}

// Start runs w until the test ends. From then on Advance waits until w has done all that is
// due; Advance(0) does for what was pushed since.
func (c *Client) Start(ctx context.Context, w *tarry.Worker) { c.t.Cleanup(c.run(ctx, w)) }

// run runs w until end is called, which waits.
func (c *Client) run(ctx context.Context, w *tarry.Worker) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	c.store.serve(w.Queues(), 1)
	go func() {
		ended <- w.Run(ctx)
		c.store.serve(w.Queues(), -1)
	}()
	return func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, tarry.ErrClosed) { // the test may close its client
			c.t.Errorf("tarrytest: %v", err)
		}
	}
}

// play has workers do what is due, and moves the clock from due time to due time up to until.
func (c *Client) play(until time.Time) error {
	to := c.Now()
	most := mostHandled
	if until.Before(endOfTime) {
		most += int(until.Sub(to) / time.Second) // a schedule may fire each second
	}
	for range most {
		c.store.moveTo(to)
		next, err := c.await()
		if err != nil || next.IsZero() || next.After(until) {
			return err
		}
		to = next
	}
	return errEndless
}

// await waits until workers have nothing to do, and returns when they may have next.
func (c *Client) await() (next time.Time, err error) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for most := c.store.leased + mostHandled; c.store.leased <= most; c.store.changed.Wait() {
		if busy, next := c.store.look(); !busy {
			return next, nil
		}
	}
	return time.Time{}, errEndless
}
