package tarry_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// settled is when an engine was told how many results.
type settled struct {
	at time.Duration
	n  int
}

// settling runs a worker on an engine with a pace, or none, that notes the settlements, with
// a handler that ends each millisecond from the first second on, for so long, and returns what
// it noted.
func settling(t *testing.T, pace time.Duration, n int, ttr time.Duration, handle func(i int) error, long time.Duration) []settled {
	t.Helper()
	var calls list[settled]
	eng := newStage()
	eng.caps = func(c *engine.Capabilities) { c.Pace = pace }
	var start time.Time
	eng.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
		calls.add(settled{time.Since(start), len(s)})
		return eng.Engine.Settle(ctx, s)
	}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		start = time.Now()
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: ttr, Concurrency: n})
		var begun atomic.Int32
		tarry.Handle(w, tarry.NewTopic[string]("q"), func(context.Context, *tarry.Message[string]) error {
			i := int(begun.Add(1)) - 1
			time.Sleep(time.Duration(i) * time.Millisecond)
			return handle(i)
		})
		for range n {
			push(t, c, "q", "x", tarry.In(time.Second))
		}
		stop := run(t, w)
		pass(long)
		stop()
	})
	return calls.all()
}

func ack(int) error { return nil }

// The first of a stream is told at once, what follows within six paces, many at a time.
func TestSettlementsGather(t *testing.T) {
	got := settling(t, pace, 100, 0, ack, 2*time.Second)
	if len(got) == 0 || got[0] != (settled{time.Second, 1}) {
		t.Fatalf("told %v", got)
	}
	sum := 0
	for i, s := range got {
		if sum += s.n; i > 0 && (s.n > 31 || s.at-got[i-1].at > 31*time.Millisecond) {
			t.Errorf("told %+v after %+v", s, got[i-1])
		}
	}
	if sum != 100 || len(got) > 6 {
		t.Errorf("told %d results in %d calls", sum, len(got))
	}
}

// Where others wait for what an ack frees, it is told within one pace.
func TestSettlementsThatOthersWaitFor(t *testing.T) {
	eng := newStage()
	eng.caps = func(c *engine.Capabilities) { c.Pace = pace }
	var began list[time.Duration]
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		if _, err := eng.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, ""); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			push(t, c, "q", "x")
		}
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			began.add(time.Since(start))
			return nil
		})
		stop := run(t, w)
		pass(time.Second)
		stop()
	})
	if all := began.all(); len(all) != 10 || all[9] > 50*time.Millisecond {
		t.Errorf("began at %v", all)
	}
}

// Without a pace a result is told as soon as it is there.
func TestSettlementsWithoutAPaceGoAtOnce(t *testing.T) {
	got := settling(t, 0, 100, 0, ack, 2*time.Second)
	if len(got) != 100 {
		t.Errorf("told %v", got)
	}
}

// Nothing waits whose time is short: a short lease, a result after which the message
// goes on, the end of the worker.
func TestSettlementsThatCannotWait(t *testing.T) {
	t.Run("short lease", func(t *testing.T) {
		if got := settling(t, pace, 10, 500*time.Millisecond, ack, 2*time.Second); len(got) != 10 {
			t.Errorf("told %v", got)
		}
	})
	t.Run("long pace", func(t *testing.T) {
		sum := 0
		for _, s := range settling(t, engine.MaxPace, 10, 3*time.Second, ack, 10*time.Second) {
			if sum += s.n; s.at > 3*time.Second {
				t.Errorf("told %d only after %v", s.n, s.at)
			}
		}
		if sum != 10 {
			t.Errorf("told %d", sum)
		}
	})
	t.Run("retry", func(t *testing.T) {
		got := settling(t, pace, 3, 0, func(i int) error {
			if i == 2 {
				return errors.New("no")
			}
			return nil
		}, 1500*time.Millisecond)
		want := settled{time.Second + 2*time.Millisecond, 2} // with the ack before it
		if len(got) != 2 || got[1] != want {
			t.Errorf("told %v, want %v at last", got, want)
		}
	})
	t.Run("drain", func(t *testing.T) {
		got := settling(t, pace, 2, 0, ack, time.Second+time.Millisecond)
		want := settled{time.Second + time.Millisecond, 1}
		if len(got) != 2 || got[1] != want {
			t.Errorf("told %v, want %v at last", got, want)
		}
	})
}

// Results do not wait for a call that hangs until their leases are over.
func TestSettlementsPassACallThatHangs(t *testing.T) {
	eng := newStage()
	var calls atomic.Int32
	eng.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return eng.Engine.Settle(ctx, s)
	}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second})
		var again atomic.Int32
		tarry.Handle(w, tarry.NewTopic[string]("q"), func(_ context.Context, m *tarry.Message[string]) error {
			if m.Attempt > 1 {
				again.Add(1)
			}
			return nil
		}, tarry.Concurrency(1))
		push(t, c, "q", "hangs")
		for range 5 {
			push(t, c, "q", "x", tarry.In(time.Millisecond))
		}
		stop := run(t, w)
		pass(time.Minute)
		if n := again.Load(); n > 0 {
			t.Errorf("%d messages were handled again", n)
		}
		stop()
	})
}

// An ack that hangs is told again while its lease holds, whatever that lasts.
func TestHungAckIsToldAgain(t *testing.T) {
	for _, ttr := range []time.Duration{time.Second, 5 * time.Second, time.Minute} {
		t.Run(ttr.String(), func(t *testing.T) {
			eng := newStage()
			var calls, handled atomic.Int32
			eng.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
				if calls.Add(1) == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return eng.Engine.Settle(ctx, s)
			}
			bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: ttr, Observer: rec.observe})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
					handled.Add(1)
					return nil
				})
				stop := run(t, w)
				push(t, c, "q", "x")
				pass(time.Hour)
				rec.one(t, tarry.Acked)
				if handled.Load() != 1 || calls.Load() != 2 {
					t.Errorf("handled %d times, told %d times", handled.Load(), calls.Load())
				}
				stop()
			})
		})
	}
}

// Whether a result counted whose answer was lost is not known when the lease is over at
// the repetition: that is no lost lease.
func TestLostAnswerIsNoLostLease(t *testing.T) {
	for name, lost := range map[string]func(out []engine.Settled) ([]engine.Settled, error){
		"call": func([]engine.Settled) ([]engine.Settled, error) { return nil, engine.ErrUnavailable },
		"item": func(out []engine.Settled) ([]engine.Settled, error) {
			out[0] = engine.Settled{Err: engine.ErrUnavailable}
			return out, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			eng := newStage()
			var calls atomic.Int32
			eng.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
				out, err := eng.Engine.Settle(ctx, s)
				if calls.Add(1) == 1 {
					return lost(out)
				}
				return out, err
			}
			synctest.Test(t, func(t *testing.T) {
				var log logged
				c := tarry.New(eng, &tarry.Config{Logger: log.logger()})
				var rec record
				var errs list[error]
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: rec.observe, OnError: func(_ tarry.Info, err error) { errs.add(err) }})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
				stop := run(t, w)
				p := push(t, c, "q", "x")
				pass(time.Minute)
				gone(t, c, p)
				if e := rec.one(t, tarry.Unconfirmed); !errors.Is(e.Err, tarry.ErrUnconfirmed) || e.ID != p.ID {
					t.Errorf("event %+v", e)
				}
				if len(rec.of(tarry.LeaseLost))+len(rec.of(tarry.EngineFailed)) > 0 {
					t.Error("it is told of as lost or failed too")
				}
				if all := errs.all(); len(all) != 1 || !errors.Is(all[0], tarry.ErrUnconfirmed) || errors.Is(all[0], tarry.ErrLeaseLost) {
					t.Errorf("OnError heard %v", all)
				}
				stop()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if s := log.String(); !strings.Contains(s, "answers were lost") || strings.Contains(s, "came too late") {
					t.Errorf("the log says %s", s)
				}

				c = tarry.New(eng, nil)
				push(t, c, "q", "claimed", tarry.Key("k"))
				calls.Store(0)
				err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(context.Context, *tarry.Message[string]) error { return nil })
				if !errors.Is(err, tarry.ErrUnconfirmed) || errors.Is(err, tarry.ErrLeaseLost) {
					t.Errorf("claim: %v", err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A worker that ends waits for results that the engine has refused singly and is told
// again.
func TestDrainWaitsForWhatIsToldAgain(t *testing.T) {
	eng := newStage()
	var calls atomic.Int32
	eng.settle = func(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
		if calls.Add(1) <= 4 {
			return failed(len(s), engine.ErrUnavailable), nil
		}
		return eng.Engine.Settle(ctx, s)
	}
	bubbleOn(t, eng, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		stop := run(t, w)
		p := push(t, c, "q", "x")
		synctest.Wait() // the first refusal, and it is set aside
		if calls.Load() != 1 {
			t.Fatalf("told %d times", calls.Load())
		}
		stop()
		gone(t, c, p)
	})
}

// failed is the answer to n settlements that fail one by one.
func failed(n int, err error) []engine.Settled {
	out := make([]engine.Settled, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}
