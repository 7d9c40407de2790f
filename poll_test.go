package tarry_test

import (
	"context"
	"errors"
	"math"
	"slices"
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
}

func newWaiter() *waiter {
	w := &waiter{stage: newStage()}
	w.caps = func(c *engine.Capabilities) { c.LeaseWait = true }
	return w
}

func (w *waiter) LeaseWait(ctx context.Context, wait engine.Wait) (engine.Waited, error) {
	wants := wantsOf(wait)
	w.calls.add(len(wants))
	end := time.Now().Add(wait.For)
	for {
		g, err := w.Lease(ctx, wants)
		if got := waitedOf(wants, g); err != nil || !time.Now().Before(end) || len(got.Messages) > 0 {
			return got, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return engine.Waited{}, ctx.Err()
		}
	}
}

// wantsOf asks each queue for what there is room for, were it the only one.
func wantsOf(w engine.Wait) (wants []engine.Want) {
	for _, q := range w.Queues {
		n, less := w.Room[q]
		if !less {
			n = w.Max
		}
		if n > 0 {
			wants = append(wants, engine.Want{Queue: q, Max: n, TTR: w.TTR, Remote: w.Remote})
		}
	}
	return wants
}

// waitedOf is a Grant of these wants as LeaseWait tells it.
func waitedOf(wants []engine.Want, g engine.Grant) engine.Waited {
	w := engine.Waited{Now: g.Now}
	for i, q := range g.Queues {
		w.Messages = append(w.Messages, q.Messages...)
		if w.NextDue.IsZero() || !q.NextDue.IsZero() && q.NextDue.Before(w.NextDue) {
			w.NextDue = q.NextDue
		}
		w.Told = append(w.Told, engine.Told{Queue: wants[i].Queue, Expired: q.Expired, Died: q.Died, Err: q.Err})
	}
	return w
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

// An answer may bring messages of several queues; each goes to the handler of its own.
func TestWorkerGetsSeveralQueuesInOneAnswer(t *testing.T) {
	bubbleOn(t, newWaiter(), func(t *testing.T, c *tarry.Client) {
		var got list[string]
		w := tarry.NewWorker(c, nil)
		for _, q := range []string{"a", "b", "c"} {
			push(t, c, q, "1")
			push(t, c, q, "2")
			tarry.Handle(w, tarry.NewTopic[string](q), func(_ context.Context, m *tarry.Message[string]) error {
				got.add(q + " gets " + m.Queue)
				return nil
			})
		}
		stop := run(t, w)
		pass(time.Second)
		all := got.all()
		slices.Sort(all)
		if want := []string{"a gets a", "a gets a", "b gets b", "b gets b", "c gets c", "c gets c"}; !slices.Equal(all, want) {
			t.Errorf("%q", all)
		}
		stop()
	})
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

// confused is an engine whose other side answers with what nobody asked for, too.
type confused struct{ *waiter }

func (c *confused) LeaseWait(ctx context.Context, wait engine.Wait) (engine.Waited, error) {
	got, err := c.waiter.LeaseWait(ctx, wait)
	g, _ := c.Lease(ctx, []engine.Want{{Queue: "other", Max: 1}})
	if len(g.Queues) == 1 {
		got.Messages = append(g.Queues[0].Messages, got.Messages...)
	}
	return got, err
}

func TestWorkerHandlesOnlyWhatItAskedFor(t *testing.T) {
	eng := &confused{newWaiter()}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		for _, queue := range []string{"other", bytesTopic.Queue()} {
			if _, err := c.Push(t.Context(), queue, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := tarry.NewWorker(c, nil)
		handled := 0
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			handled++
			cancel()
			return nil
		})
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if handled != 1 {
			t.Errorf("%d messages were handled, want 1", handled)
		}
	})
}

// slowWaiter answers late, beyond the wait.
type slowWaiter struct {
	*waiter
	by  time.Duration
	err error
}

func (w *slowWaiter) LeaseWait(ctx context.Context, wait engine.Wait) (engine.Waited, error) {
	select {
	case <-time.After(wait.For + w.by):
	case <-ctx.Done():
		return engine.Waited{}, ctx.Err()
	}
	if w.err != nil {
		return engine.Waited{}, w.err
	}
	wait.For = 0
	return w.waiter.LeaseWait(ctx, wait)
}

// The first answer counts however late it is, and so does its error: a lease that was never
// answered must not look like one that found nothing.
func TestLeaseAwaitsTheFirstAnswer(t *testing.T) {
	for _, fails := range []error{nil, engine.ErrUnavailable} {
		eng := &slowWaiter{newWaiter(), time.Minute, fails}
		bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
			push(t, c, "q", "x")
			got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Second})
			if !errors.Is(err, fails) || (len(got.Messages) == 1) != (fails == nil) {
				t.Errorf("the engine fails with %v: %d messages, %v", fails, len(got.Messages), err)
			}
		})
	}
}

// scriptedWaiter answers its first polls as given, and then as a waiter.
type scriptedWaiter struct {
	*waiter
	polls []func() (engine.Waited, error)
	n     int
}

func (w *scriptedWaiter) LeaseWait(ctx context.Context, wait engine.Wait) (engine.Waited, error) {
	if w.n++; w.n <= len(w.polls) {
		time.Sleep(time.Millisecond)
		return w.polls[w.n-1]()
	}
	return w.waiter.LeaseWait(ctx, wait)
}

func expired() (engine.Waited, error) {
	return engine.Waited{Told: []engine.Told{{Queue: "q", Expired: 2}}}, nil
}

// A wait as long as a duration can be does not end early, though its end and the grace
// together are beyond a duration.
func TestLeaseWaitsForever(t *testing.T) {
	bubbleOn(t, &scriptedWaiter{waiter: newWaiter(), polls: []func() (engine.Waited, error){expired}}, func(t *testing.T, c *tarry.Client) {
		time.AfterFunc(time.Hour, func() { push(t, c, "q", "x") })
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: math.MaxInt64})
		if err != nil || len(got.Messages) != 1 {
			t.Errorf("%d messages, %v", len(got.Messages), err)
		}
	})
}

// What a lease was told goes to one caller only, so it comes along with an error.
func TestLeaseTellsWithAnError(t *testing.T) {
	fails := func() (engine.Waited, error) { return engine.Waited{}, engine.ErrUnavailable }
	bubbleOn(t, &scriptedWaiter{waiter: newWaiter(), polls: []func() (engine.Waited, error){expired, fails}}, func(t *testing.T, c *tarry.Client) {
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Minute})
		if !errors.Is(err, tarry.ErrUnavailable) || len(got.Told) != 1 || got.Told[0].Expired != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
