package tarry_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// slowQueue is a client of the queues "fast" and "slow". The second call for "slow"
// hangs until let is closed.
type slowQueue struct {
	c     *tarry.Client
	slow  chan struct{} // has a token for each call for "slow" that begins or hangs
	let   chan struct{}
	came  chan struct{} // has one when a message of "fast" is leased
	left  chan struct{} // closed when the lease is over
	calls atomic.Int32
}

func newSlowQueue() *slowQueue {
	s := newStage()
	q := &slowQueue{c: tarry.New(s, nil), slow: make(chan struct{}, 100), let: make(chan struct{}), came: make(chan struct{}, 100), left: make(chan struct{})}
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		slow := slices.ContainsFunc(wants, func(w engine.Want) bool { return w.Queue == "slow" })
		if slow && q.calls.Add(1) == 2 {
			q.slow <- struct{}{}
			<-q.let
		}
		g, err := s.Engine.Lease(ctx, wants)
		if slow {
			q.slow <- struct{}{}
		}
		if err == nil && wants[0].Queue == "fast" && len(g.Queues[0].Messages) > 0 {
			q.came <- struct{}{}
		}
		return g, err
	}
	return q
}

// begin begins a lease that gets a message of "fast" and waits for "slow", whose call
// has taken so long that no room is kept for it.
func (q *slowQueue) begin(t *testing.T, lease func() error) bool {
	go func() {
		defer close(q.left)
		_ = lease()
	}()
	<-q.slow // both queues are asked, and are empty
	if _, err := q.c.Push(t.Context(), "slow", nil); err != nil {
		t.Error(err)
		return false
	}
	<-q.slow
	time.Sleep(1100 * time.Millisecond)
	if _, err := q.c.Push(t.Context(), "fast", nil); err != nil {
		t.Error(err)
		return false
	}
	<-q.came
	return true
}

// end fails the test when the client is locked.
func (q *slowQueue) end(t *testing.T) {
	done := make(chan error, 1)
	go func() {
		<-q.left
		_, err := q.c.Push(context.Background(), "other", nil)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
		if err := q.c.Close(); err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the client hangs")
	}
}

// leases are the ways to wait for one of two queues.
var leases = map[string]func(ctx context.Context, c *tarry.Client) error{
	"Client": func(ctx context.Context, c *tarry.Client) error {
		_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"fast", "slow"}, Max: 10, Wait: time.Minute})
		return err
	},
	"Leaser": func(ctx context.Context, c *tarry.Client) error {
		l, err := c.Leaser([]string{"fast", "slow"})
		if err != nil {
			return err
		}
		defer l.Close()
		_, err = l.Lease(ctx, tarry.LeaseRequest{Max: 10, Wait: time.Minute})
		return err
	},
}

// heldErr is a context whose Err, once it has ended, blocks until it is let go.
type heldErr struct {
	context.Context
	once          sync.Once
	asked, resume chan struct{}
}

func (c *heldErr) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.once.Do(func() {
			close(c.asked)
			<-c.resume
		})
	}
	return err
}

// A caller whose context ends with a message in hand, as a slow call for it comes back,
// locks nothing.
func TestLeaseThatEndsAsASlowCallReturns(t *testing.T) {
	for name, lease := range leases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newSlowQueue()
			inner, cancel := context.WithCancel(t.Context())
			defer cancel()
			ctx := &heldErr{Context: inner, asked: make(chan struct{}), resume: make(chan struct{})}
			if !q.begin(t, func() error { return lease(ctx, q.c) }) {
				return
			}
			time.Sleep(20 * time.Millisecond) // it has the message in hand, and waits for more
			cancel()
			<-ctx.asked
			close(q.let)
			time.Sleep(100 * time.Millisecond) // the call comes back
			close(ctx.resume)
			q.end(t)
		})
	}
}
