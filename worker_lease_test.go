package tarry_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func TestWorkerLostLeaseEndsTheContext(t *testing.T) {
	for name, tc := range map[string]struct {
		broken func(context.Context) ([]engine.Settled, error)
		after  time.Duration // the lease began
	}{
		"taken": {func(context.Context) ([]engine.Settled, error) {
			return []engine.Settled{{Err: engine.ErrLeaseLost}}, nil
		}, 5 * time.Second},
		"unreachable": {func(context.Context) ([]engine.Settled, error) { return nil, engine.ErrUnavailable }, 10 * time.Second},
		"hanging":     {func(ctx context.Context) ([]engine.Settled, error) { <-ctx.Done(); return nil, ctx.Err() }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
				if in[0].Do == engine.Extend {
					return tc.broken(ctx)
				}
				return s.Engine.Settle(ctx, in)
			}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, Observer: rec.observe})
				var causes list[error]
				var ended list[time.Duration]
				tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
					if m.Attempt > 1 {
						return nil
					}
					start := time.Now()
					<-ctx.Done()
					causes.add(context.Cause(ctx))
					ended.add(time.Since(start))
					return ctx.Err()
				})
				stop := run(t, w)
				push(t, c, "q", "x")
				pass(time.Minute)
				if causes.len() != 1 || !errors.Is(causes.all()[0], tarry.ErrLeaseLost) || ended.all()[0] != tc.after {
					t.Errorf("ended after %v with %v; want ErrLeaseLost after %s", ended.all(), causes.all(), tc.after)
				}
				if e := rec.one(t, tarry.LeaseLost); !errors.Is(e.Err, tarry.ErrLeaseLost) || e.Duration != tc.after {
					t.Errorf("event %+v", e)
				}
				stop()
			})
		})
	}
}

func TestWorkerRepeatsAcksUntilTheLeaseIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		down time.Duration
		kind tarry.EventKind
	}{
		"back in time": {5 * time.Second, tarry.Acked},
		"too long":     {time.Hour, tarry.EngineFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			var down atomic.Bool
			s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
				if down.Load() {
					return nil, engine.ErrUnavailable
				}
				return s.Engine.Settle(ctx, in)
			}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, Observer: rec.observe})
				once := func(_ context.Context, m *tarry.Message[string]) (bool, error) { return m.Attempt == 1, nil }
				tarry.Handle(w, bytesTopic.OnlyIf(once), func(_ context.Context, m *tarry.Message[string]) error {
					if m.Attempt > 1 {
						t.Error("handled twice")
						return tarry.Bury(nil)
					}
					return nil
				})
				down.Store(true)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				push(t, c, "q", "x")
				pass(min(tc.down, 9*time.Second))
				if tc.down < 10*time.Second {
					down.Store(false)
				}
				pass(20 * time.Second)
				down.Store(false)
				if len(rec.of(tc.kind)) == 0 {
					t.Errorf("no event of kind %s: %+v", tc.kind, rec.events)
				}
				cancel()
				if err := <-done; (err != nil) != (tc.kind == tarry.EngineFailed) {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

func TestWorkerSettlesSinglyWhatFails(t *testing.T) {
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		out, err := s.Engine.Settle(ctx, in[1:])
		return append([]engine.Settled{{Err: engine.ErrLeaseLost}}, out...), err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			time.Sleep(time.Second)
			return nil
		})
		for range 10 {
			push(t, c, "q", "x")
		}
		stop := run(t, w)
		pass(2 * time.Second)
		if lost, acked := len(rec.of(tarry.LeaseLost)), len(rec.of(tarry.Acked)); lost == 0 || lost+acked != 10 {
			t.Errorf("%d lost, %d acked of 10", lost, acked)
		}
		stop()
	})
}

func TestWorkerNeverHoldsMoreThanItCanStart(t *testing.T) {
	s := newStage()
	var held, most, asked atomic.Int32
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		for _, w := range wants {
			asked.Store(max(asked.Load(), int32(w.Max)))
		}
		g, err := s.Engine.Lease(ctx, wants)
		for _, q := range g.Queues {
			most.Store(max(most.Load(), held.Add(int32(len(q.Messages)))))
		}
		return g, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 7})
		var now, peak, peakB atomic.Int32
		var nowB atomic.Int32
		handler := func(b bool) func(context.Context, *tarry.Message[string]) error {
			return func(context.Context, *tarry.Message[string]) error {
				peak.Store(max(peak.Load(), now.Add(1)))
				if b {
					peakB.Store(max(peakB.Load(), nowB.Add(1)))
				}
				time.Sleep(time.Second)
				now.Add(-1)
				if b {
					nowB.Add(-1)
				}
				held.Add(-1)
				return nil
			}
		}
		tarry.Handle(w, bytesTopic, handler(false))
		tarry.Handle(w, tarry.NewTopic[string]("b"), handler(true), tarry.Concurrency(2))
		for range 100 {
			push(t, c, "q", "x")
			push(t, c, "b", "x")
		}
		stop := run(t, w)
		pass(time.Hour)
		if peak.Load() != 7 || peakB.Load() != 2 || most.Load() > 7 || asked.Load() > 7 || held.Load() != 0 {
			t.Errorf("%d handlers at most (b: %d), %d leases at most, asked for %d; want 7, 2, 7, 7", peak.Load(), peakB.Load(), most.Load(), asked.Load())
		}
		stop()
	})
}

func TestWorkerDrainInterruptsWhatTakesTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{DrainTimeout: 10 * time.Second, Observer: rec.observe})
		tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		p := push(t, c, "q", "x")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		pass(time.Second)
		cancel()
		start := time.Now()
		err := <-done
		if took := time.Since(start); took != 10*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drained in %s with %v", took, err)
		}
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State != tarry.Ready || info.Attempt != 0 {
			t.Errorf("became %s at attempt %d, %v; want it given back", info.State, info.Attempt, err)
		}
		rec.one(t, tarry.Released)
	})
}

func TestWorkerEndsWhenItsClientIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		w2 := tarry.NewWorker(c, nil)
		tarry.Handle(w2, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		if err := w2.Run(t.Context()); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("Run on a closed client: %v", err)
		}
	})
}

func TestWorkerMisuse(t *testing.T) {
	c := tarry.New(newStage(), nil)
	defer c.Close()
	nop := func(context.Context, *tarry.Message[string]) error { return nil }
	over, cancel := context.WithCancel(t.Context())
	cancel()

	for name, w := range map[string]*tarry.Worker{
		"no handler":  tarry.NewWorker(c, nil),
		"concurrency": withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: -1})),
		"ttr":         withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: time.Microsecond})),
		"timeout":     withHandler(tarry.NewWorker(c, &tarry.WorkerConfig{HandlerTimeout: -1})),
	} {
		if err := w.Run(over); !errors.Is(err, tarry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, tarry.NewTopic[string]("bad name"), nop)
	if err := w.Run(over); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("bad queue: %v", err)
	}

	w = withHandler(tarry.NewWorker(c, nil))
	if err := w.Run(over); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := w.Run(over); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("second Run: %v", err)
	}
	panics(t, "after Run", func() { tarry.Handle(w, tarry.NewTopic[string]("r"), nop) })
	panics(t, "twice", func() { withHandler(withHandler(tarry.NewWorker(c, nil))) })
	panics(t, "Concurrency(0)", func() { tarry.Concurrency(0) })
	panics(t, "Timeout(-1)", func() { tarry.HandlerTimeout(-1) })
	panics(t, "no guard", func() { bytesTopic.OnlyIf(nil) })
}

func withHandler(w *tarry.Worker) *tarry.Worker {
	tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
	return w
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}
