package tarry_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// starved runs the rest of a test on one processor.
func starved(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// stall lets so much time pass that the lease of the message with the key k is
// over, and cancels it.
func stall(t *testing.T, s *stage, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	errs, err := s.Cancel(context.Background(), []engine.Ref{{Queue: "q", Key: "k"}})
	if err != nil || errs[0] != nil {
		t.Errorf("cancel after the lease: %v, %v", errs, err)
	}
}

// Whatever a worker was kept by, a few milliseconds of lease over, another has
// cancelled the message: no handler may start.
func TestWorkerNeverStartsWhatWasCancelledMeanwhile(t *testing.T) {
	const ttr = 2 * time.Millisecond
	type guard = func(context.Context, *tarry.Message[string]) (bool, error)
	yes := func(context.Context, *tarry.Message[string]) (bool, error) { return true, nil }
	answers := func(t *testing.T, s *stage) {
		s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
			g, err := s.Engine.Lease(ctx, wants)
			if len(g.Queues[0].Messages) > 0 {
				stall(t, s, 5*ttr)
			}
			return g, err
		}
	}
	for name, kept := range map[string]func(t *testing.T, s *stage, cfg *tarry.WorkerConfig, guards *[]guard){
		"by the answer": func(t *testing.T, s *stage, _ *tarry.WorkerConfig, _ *[]guard) { answers(t, s) },
		"by the answer of an engine that waits": func(t *testing.T, s *stage, _ *tarry.WorkerConfig, _ *[]guard) {
			s.caps = func(c *engine.Capabilities) { c.LeaseWait = true }
			answers(t, s)
		},
		"by middleware": func(t *testing.T, s *stage, cfg *tarry.WorkerConfig, _ *[]guard) {
			cfg.Middleware = []tarry.Middleware{func(next tarry.HandlerFunc) tarry.HandlerFunc {
				return func(ctx context.Context, m *tarry.Message[[]byte]) error {
					stall(t, s, 5*ttr)
					return next(context.WithoutCancel(ctx), m)
				}
			}}
		},
		"by its guard": func(t *testing.T, s *stage, _ *tarry.WorkerConfig, guards *[]guard) {
			*guards = []guard{func(context.Context, *tarry.Message[string]) (bool, error) {
				stall(t, s, 5*ttr)
				return true, nil
			}}
		},
		"by the first of two guards": func(t *testing.T, s *stage, _ *tarry.WorkerConfig, guards *[]guard) {
			*guards = []guard{func(context.Context, *tarry.Message[string]) (bool, error) {
				stall(t, s, 5*ttr)
				return true, nil
			}, func(context.Context, *tarry.Message[string]) (bool, error) {
				t.Error("the second guard was asked")
				return true, nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			starved(t)
			s := newStage()
			s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
				if in[0].Do == engine.Extend {
					return nil, engine.ErrUnavailable
				}
				return s.Engine.Settle(ctx, in)
			}
			var rec record
			cfg := &tarry.WorkerConfig{Concurrency: 1, LeaseTTR: ttr, Observer: rec.observe}
			guards := []guard{yes}
			kept(t, s, cfg, &guards) // before the client asks for capabilities
			bubbleOn(t, &waiter{stage: s}, func(t *testing.T, c *tarry.Client) {
				w := tarry.NewWorker(c, cfg)
				topic := bytesTopic
				for _, g := range guards {
					topic = topic.OnlyIf(g)
				}
				tarry.Handle(w, topic, func(context.Context, *tarry.Message[string]) error {
					t.Error("a handler started")
					return nil
				})
				stop := run(t, w)
				push(t, c, "q", "x", tarry.Key("k"))
				pass(time.Second)
				if e := rec.one(t, tarry.LeaseLost); !errors.Is(e.Err, tarry.ErrLeaseLost) {
					t.Errorf("event %+v", e)
				}
				if n := len(rec.of(tarry.Acked)) + len(rec.of(tarry.Released)); n != 0 {
					t.Errorf("events %+v", rec.events)
				}
				stop()
			})
		})
	}
}

// Of a lease that may have lapsed on its way the engine is asked, and what is ours
// is started. Else nothing was started, so the attempt is given back.
func TestWorkerAsksAgainForWhatCameTooLate(t *testing.T) {
	for name, tc := range map[string]struct {
		extend  error
		attempt uint32
	}{
		"still ours":  {nil, 1},
		"who can say": {engine.ErrUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			slow := true
			s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
				if slow {
					slow = false
					time.Sleep(time.Second) // on its way to or from the engine: nobody knows
				}
				return s.Engine.Lease(ctx, wants)
			}
			s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
				if in[0].Do == engine.Extend && tc.extend != nil {
					return nil, tc.extend
				}
				return s.Engine.Settle(ctx, in)
			}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1, LeaseTTR: 100 * time.Millisecond, Observer: rec.observe})
				var attempts list[uint32]
				tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
					attempts.add(m.Attempt)
					return nil
				})
				p := push(t, c, "q", "x")
				stop := run(t, w)
				pass(time.Minute)
				if got := attempts.all(); len(got) != 1 || got[0] != tc.attempt {
					t.Errorf("handled at attempts %v, want once at %d", got, tc.attempt)
				}
				if released := len(rec.of(tarry.Released)); (released != 0) != (tc.extend != nil) {
					t.Errorf("%d released", released)
				}
				gone(t, c, p)
				stop()
				synctest.Wait()
			})
		})
	}
}
