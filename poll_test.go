package tarry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// waiter is an engine that waits by itself, as one across a network does.
type waiter struct {
	*stage
	calls list[int]
	step  time.Duration // after which it looks again
}

func newWaiter() *waiter {
	w := &waiter{stage: newStage(), step: 100 * time.Millisecond}
	w.caps = func(c *engine.Capabilities) { c.LeaseWait = true }
	return w
}

func (w *waiter) LeaseWait(ctx context.Context, wants []engine.Want, most int, wait time.Duration) (engine.Grant, error) {
	w.calls.add(len(wants))
	end := time.Now().Add(wait)
	for {
		g, err := w.Lease(ctx, wants)
		if err != nil || !time.Now().Before(end) {
			return g, err
		}
		for _, q := range g.Queues {
			if len(q.Messages) > 0 {
				return g, nil
			}
		}
		select {
		case <-time.After(w.step):
		case <-ctx.Done():
			return engine.Grant{}, ctx.Err()
		}
	}
}

func TestWorkerOnAnEngineThatWaits(t *testing.T) {
	eng := newWaiter()
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		var at list[string]
		start := time.Now()
		handler := func(d time.Duration) func(context.Context, *tarry.Message[string]) error {
			return func(_ context.Context, m *tarry.Message[string]) error {
				at.add(m.Queue + " " + time.Since(start).String())
				time.Sleep(d)
				return nil
			}
		}
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
		tarry.Handle(w, tarry.NewTopic[string]("narrow"), handler(time.Second), tarry.Concurrency(1))
		tarry.Handle(w, tarry.NewTopic[string]("empty"), handler(0))
		stop := run(t, w)
		push(t, c, "narrow", "1")
		push(t, c, "narrow", "2")
		pass(10 * time.Second)
		want := []string{"narrow 100ms", "narrow 1.1s"}
		if got := at.all(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("handled at %q, want %q", got, want)
		}
		if n := eng.calls.len(); n > 6 {
			t.Errorf("%d polls in ten seconds", n)
		}
		stop()
	})
}

// Of a steady stream each poll brings some messages, and none waits long for that.
func TestPollsKeepTheirPace(t *testing.T) {
	eng := newWaiter()
	eng.step = time.Millisecond
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		const n = 100
		var late list[time.Duration]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, tarry.NewTopic[string]("q"), func(_ context.Context, m *tarry.Message[string]) error {
			late.add(time.Since(m.Due))
			return nil
		})
		for i := range n {
			push(t, c, "q", "x", tarry.In(time.Second+time.Duration(i)*time.Millisecond))
		}
		stop := run(t, w)
		pass(2 * time.Second)
		for _, d := range late.all() {
			if d >= 2*time.Millisecond {
				t.Errorf("handled %s late", d)
			}
		}
		if got := late.len(); got != n {
			t.Errorf("%d handled, want %d", got, n)
		}
		if polls := eng.calls.len(); polls > n*6/10 {
			t.Errorf("%d polls for %d messages", polls, n)
		}
		stop()
	})
}

// A poll that brought as much as there was room for, or many messages, is followed by
// the next at once.
func TestPollsFollowARichOneAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ n, slots, most int }{
		"all there is room for": {10, 1, 1000},
		"many":                  {320, 1000, 32},
	} {
		t.Run(name, func(t *testing.T) {
			eng := newWaiter()
			eng.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
				for i := range wants {
					wants[i].Max = min(wants[i].Max, tc.most)
				}
				return eng.Engine.Lease(ctx, wants)
			}
			bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: tc.slots})
				var handled list[string]
				tarry.Handle(w, tarry.NewTopic[string]("q"), func(_ context.Context, m *tarry.Message[string]) error {
					handled.add(m.Body)
					return nil
				})
				for range tc.n {
					push(t, c, "q", "x")
				}
				stop := run(t, w)
				synctest.Wait()
				if got := handled.len(); got != tc.n {
					t.Errorf("%d handled in no time, want %d", got, tc.n)
				}
				stop()
			})
		})
	}
}

func TestLeaseOnAnEngineThatWaits(t *testing.T) {
	bubbleOn(t, newWaiter(), func(t *testing.T, c *tarry.Client) {
		start := time.Now()
		req := tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: 30 * time.Second}
		if l, err := c.Lease(t.Context(), req); err != nil || len(l.Messages) != 0 || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
		done := make(chan error, 1)
		req.Wait = time.Hour
		go func() { _, err := c.Lease(t.Context(), req); done <- err }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("closed while waiting: %v", err)
		}
	})
}
