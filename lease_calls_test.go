package tarry_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// A message that comes while the engine answers that there is none is not overlooked.
func TestPushDuringACallIsNoticed(t *testing.T) {
	s := newStage()
	var calls atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		if calls.Add(1) == 1 {
			if _, err := s.Engine.Push(ctx, []engine.Message{{Queue: "q"}}); err != nil {
				t.Error(err)
			}
		}
		return g, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		start := time.Now()
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
		if took := time.Since(start); err != nil || len(got.Messages) != 1 || took > time.Second {
			t.Errorf("%d messages after %v, %v", len(got.Messages), took, err)
		}
	})
}

// A caller that has left may use its slices again, though the engine has not answered yet.
func TestCallersSlicesAreTheirOwn(t *testing.T) {
	s := newStage()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		asked := make(chan engine.Want, 1)
		s.lease = func(_ context.Context, wants []engine.Want) (engine.Grant, error) {
			time.Sleep(time.Minute)
			asked <- wants[0]
			return s.Engine.Lease(context.Background(), wants)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wants := []engine.Want{{Queue: "q", Max: 1, Takers: []engine.Taker{{Worker: "w", Max: 1}}}}
		if _, err := c.LeaseNow(ctx, wants); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
		wants[0].Takers[0].Worker, wants[0].Queue = "other", "other"
		if w := <-asked; w.Queue != "q" || w.Takers[0].Worker != "w" {
			t.Errorf("the engine is asked for %+v", w)
		}
	})
}

// A queue on which the engine is slow is asked by itself from then on, so that others do
// not wait for it.
func TestSlowQueueIsAskedApart(t *testing.T) {
	s := newStage()
	const slow = 3 * time.Second
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if slices.ContainsFunc(wants, func(w engine.Want) bool { return w.Queue == "slow" }) {
			time.Sleep(slow)
		}
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		took := make(chan time.Duration, 1)
		start := time.Now()
		tarry.Handle(w, tarry.NewTopic[string]("fast"), func(context.Context, *tarry.Message[string]) error {
			took <- time.Since(start)
			return nil
		})
		tarry.Handle(w, tarry.NewTopic[string]("slow"), func(context.Context, *tarry.Message[string]) error { return nil })
		stop := run(t, w)
		pass(time.Minute) // both were asked in one call, which took long
		start = time.Now()
		due := tarry.In(time.Second)
		push(t, c, "slow", "x", due)
		push(t, c, "fast", "x", due)
		if d := <-took; d > time.Second+100*time.Millisecond {
			t.Errorf("a message due in 1s was handled after %v", d)
		}
		stop()
	})
}

// What a lease has in hand goes back when its context ends while it asks for more.
func TestLeaseLeftWhileItAsksForMore(t *testing.T) {
	s := newStage()
	var calls atomic.Int32
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		ctx, leave := context.WithCancel(t.Context())
		s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
			if calls.Add(1) == 2 {
				leave()
				time.Sleep(time.Second)
			}
			return s.Engine.Lease(ctx, wants)
		}
		for range 8 {
			push(t, c, "a", "x")
		}
		if got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"a", "b"}, Max: 10}); !errors.Is(err, context.Canceled) || len(got.Messages) > 0 {
			t.Fatalf("%d messages, %v", len(got.Messages), err)
		}
		pass(time.Minute / 2)
		for m, err := range c.List(t.Context(), "a", tarry.Leased) {
			t.Errorf("%d is still leased, %v", m.ID, err)
		}
		for m, err := range c.List(t.Context(), "a", tarry.Ready) {
			if err != nil || m.Attempt != 0 {
				t.Errorf("%d is ready at attempt %d, %v", m.ID, m.Attempt, err)
			}
		}
		if n := calls.Load(); n < 2 {
			t.Errorf("%d calls; the test shows nothing", n)
		}
		synctest.Wait()
	})
}
