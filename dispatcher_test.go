package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// counting returns a stage that counts its calls of Lease.
func counting() (*stage, *atomic.Int32) {
	s, n := newStage(), new(atomic.Int32)
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		n.Add(1)
		return s.Engine.Lease(ctx, wants)
	}
	return s, n
}

func TestThousandLongPollsCostFewCalls(t *testing.T) {
	s, calls := counting()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var got atomic.Int32
		var waiting sync.WaitGroup
		for range 1000 {
			waiting.Go(func() {
				l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour,
					LeaseOptions: tarry.LeaseOptions{TTR: 24 * time.Hour}})
				if err != nil {
					t.Error(err)
				}
				got.Add(int32(len(l.Messages)))
			})
		}
		synctest.Wait()
		pass(10 * time.Minute)
		for i := range 100 {
			push(t, c, "q", fmt.Sprint(i), tarry.In(time.Minute))
		}
		waiting.Wait()
		if got.Load() != 100 {
			t.Errorf("%d messages came, want 100", got.Load())
		}
		if n := calls.Load(); n > 110 { // at most one for each push
			t.Errorf("%d calls of Lease", n)
		}
	})
}

func TestLeaseWaitsForTheDueTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.In(time.Minute))
		start := time.Now()
		req := tarry.LeaseRequest{Queues: []string{"q"}, Max: 10}
		l, err := c.Lease(t.Context(), req)
		if err != nil || len(l.Messages) != 0 || l.NextDue.Sub(start) != time.Minute {
			t.Errorf("without waiting: %+v, %v", l, err)
		}
		req.Wait = 10 * time.Second
		if l, err := c.Lease(t.Context(), req); err != nil || len(l.Messages) != 0 || time.Since(start) != 10*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
		req.Wait = time.Hour
		if l, err := c.Lease(t.Context(), req); err != nil || len(l.Messages) != 1 || time.Since(start) != time.Minute {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
	})
}

func TestLeaseIsWokenByAnEarlierMessage(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "late", tarry.In(time.Hour))
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			push(t, c, "q", "early", tarry.In(5*time.Second))
		}()
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 10, Wait: 2 * time.Hour})
		if err != nil || len(l.Messages) != 1 || string(l.Messages[0].Body) != "early" || time.Since(start) != 6*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(start), l, err)
		}
	})
}

func TestCloseEndsWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		errs := make(chan error, 10)
		for range 10 {
			go func() {
				_, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
				errs <- err
			}()
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for range 10 {
			if err := <-errs; !errors.Is(err, tarry.ErrClosed) {
				t.Errorf("lease: %v", err)
			}
		}
		if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1}); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("lease after Close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestLostHintIsMadeUpForByRecheck(t *testing.T) {
	s, calls := counting()
	s.watch = func(func(string)) func() { return func() {} }
	s.caps = func(c *engine.Capabilities) { c.Recheck = 5 * time.Second }
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var at list[time.Duration]
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			at.add(time.Since(start))
			return nil
		})
		stop := run(t, w)
		pass(time.Second)
		push(t, c, "q", "x")
		pass(time.Minute)
		if got := at.all(); len(got) != 1 || got[0] != 5*time.Second {
			t.Errorf("handled at %v, want 5s", got)
		}
		if n := calls.Load(); n > 20 {
			t.Errorf("%d calls of Lease in a minute", n)
		}
		stop()
	})
}

func TestEngineThatFailsIsAskedAgain(t *testing.T) {
	s := newStage()
	var down atomic.Bool
	var calls atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if calls.Add(1); down.Load() {
			return engine.Grant{}, engine.ErrUnavailable
		}
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe}))
		down.Store(true)
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(time.Minute)
		if _, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"other"}, Max: 1, Wait: time.Hour}); !errors.Is(err, tarry.ErrUnavailable) {
			t.Errorf("lease: %v", err)
		}
		down.Store(false)
		pass(10 * time.Second)
		if n := calls.Load(); n > 40 {
			t.Errorf("%d calls in a minute of failure", n)
		}
		if len(rec.of(tarry.EngineFailed)) == 0 || len(rec.of(tarry.Acked)) != 1 {
			t.Errorf("events %+v", rec.events)
		}
		stop()
	})
}

func TestNoQueueStarvesAnother(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		for _, q := range []string{"a", "b", "c"} {
			for range 300 {
				push(t, c, q, "x")
			}
		}
		var order list[string]
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1})
		for _, q := range []string{"a", "b", "c"} {
			tarry.Handle(w, tarry.NewTopic[string](q), func(_ context.Context, m *tarry.Message[string]) error {
				order.add(m.Queue)
				time.Sleep(time.Second)
				return nil
			})
		}
		stop := run(t, w)
		pass(99*time.Second + 500*time.Millisecond)
		n := map[string]int{}
		for _, q := range order.all() {
			n[q]++
		}
		for _, q := range []string{"a", "b", "c"} {
			if n[q] < 30 || n[q] > 36 {
				t.Errorf("handled by queue: %v; want a third each", n)
			}
		}
		stop()
	})
}

// lag is an engine whose clock a test can set apart from the process's.
type lag struct {
	*enginetest.Model
	recheck time.Duration
}

func (l *lag) Capabilities() engine.Capabilities {
	caps := l.Model.Capabilities()
	caps.Recheck = l.recheck
	return caps
}

func TestEngineClockDecides(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			eng := &lag{recheck: time.Minute}
			eng.Model = enginetest.NewModel(func() time.Time { return time.Now().Add(off) })
			bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe, LeaseTTR: 10 * time.Second})
				var at list[time.Duration]
				start := time.Now()
				tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
					at.add(time.Since(start))
					time.Sleep(30 * time.Second)
					return ctx.Err()
				})
				stop := run(t, w)
				push(t, c, "q", "x", tarry.In(30*time.Second))
				pass(5 * time.Minute)
				if got := at.all(); len(got) != 1 || got[0] != 30*time.Second {
					t.Errorf("handled at %v, want 30s", got)
				}
				if e := rec.one(t, tarry.Acked); e.Lateness != 0 {
					t.Errorf("lateness %s", e.Lateness)
				}
				stop()
			})
		})
	}
}

func TestStepOfTheEngineClockIsNoticedByRecheck(t *testing.T) {
	var off atomic.Int64
	eng := &lag{recheck: time.Second}
	eng.Model = enginetest.NewModel(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		var at list[time.Duration]
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			at.add(time.Since(start))
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x", tarry.In(time.Hour))
		pass(10*time.Second + 500*time.Millisecond)
		off.Store(int64(2 * time.Hour))
		pass(time.Minute)
		if got := at.all(); len(got) != 1 || got[0] > 12*time.Second {
			t.Errorf("handled at %v, want within a second of the step", got)
		}
		stop()
	})
}

// A worker that stops leaves nothing leased behind, also when another call for it ends
// before what came too late has been released.
func TestWorkerThatStopsWaitsForWhatIsGivenBack(t *testing.T) {
	s := newStage()
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		if len(wants) == 1 && wants[0].Queue == "late" { // it brings nothing
			time.Sleep(100 * time.Millisecond)
			return engine.Grant{Now: time.Now(), Queues: make([]engine.Granted, 1)}, nil
		}
		g, err := s.Engine.Lease(ctx, wants)
		time.Sleep(50 * time.Millisecond)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		time.Sleep(time.Second)
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		for _, q := range []string{"soon", "late"} {
			tarry.Handle(w, tarry.NewTopic[string](q), func(context.Context, *tarry.Message[string]) error { return nil }, tarry.Concurrency(1))
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- w.Run(ctx) }()
		time.Sleep(time.Second)
		push(t, c, "late", "x", tarry.In(time.Second))
		push(t, c, "soon", "x", tarry.In(time.Second+10*time.Millisecond))
		time.Sleep(time.Second + 20*time.Millisecond) // calls for both are under way
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, q := range []string{"soon", "late"} {
			if q, err := c.Queue(t.Context(), q); err != nil || q.Leased != 0 || q.Ready != 1 {
				t.Errorf("%+v, %v", q, err)
			}
		}
	})
}
