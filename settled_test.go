package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// ackItself settles a message as a handler's own transaction does.
func ackItself(t *testing.T, c *tarry.Client, m claimed) {
	t.Helper()
	if err := m.Settle(context.Background(), c, tarry.Settlement{Do: tarry.DoAck}); err != nil {
		t.Errorf("settle: %v", err)
	}
}

// witness gathers what a worker reports.
type witness struct {
	record
	log    logged
	errors list[error]
}

func (r *witness) config() *tarry.WorkerConfig {
	return &tarry.WorkerConfig{
		LeaseTTR: 10 * time.Second, Observer: r.observe, Logger: r.log.logger(),
		OnError: func(_ tarry.Info, err error) { r.errors.add(err) },
	}
}

func (r *witness) none(t *testing.T) {
	t.Helper()
	if n := len(r.of(tarry.LeaseLost)) + len(r.of(tarry.EngineFailed)); n > 0 || r.errors.len() > 0 || r.log.String() != "" {
		t.Errorf("trouble: %d events, %v, %q", n, r.errors.all(), r.log.String())
	}
}

func TestSettledByItsHandler(t *testing.T) {
	s := newStage()
	var told list[engine.Action]
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		for _, x := range in {
			told.add(x.Do)
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec witness
		w := tarry.NewWorker(c, rec.config())
		tarry.Handle(w, bytesTopic, func(_ context.Context, m claimed) error {
			time.Sleep(time.Second)
			ackItself(t, c, m)
			if m.Body == "wrapped" {
				return fmt.Errorf("as it should be: %w", tarry.Settled())
			}
			return tarry.Settled()
		}, tarry.Concurrency(1))
		stop := run(t, w)
		for _, body := range []string{"plain", "wrapped"} {
			p := push(t, c, "q", body)
			pass(time.Minute)
			gone(t, c, p)
		}
		stop()
		if done := rec.of(tarry.SelfSettled); len(done) != 2 || done[0].Duration != time.Second || done[0].Err != nil {
			t.Errorf("events %+v", done)
		}
		if rec.none(t); told.len() != 2 {
			t.Errorf("the engine was told %v; want what the handlers told it alone", told.all())
		}
	})
}

// A handler may keep its progress in its message. The message may come again before the
// handler has returned: it is begun soon after that.
func TestReplacedByItsHandler(t *testing.T) {
	for name, lingers := range map[string]time.Duration{"at once": 0, "later": 25 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *tarry.Client) {
				var rec witness
				w := tarry.NewWorker(c, rec.config())
				var steps list[string]
				tarry.Handle(w, bytesTopic, func(ctx context.Context, m claimed) error {
					if steps.add(m.Body); m.Attempt != 1 {
						t.Errorf("%q has attempt %d", m.Body, m.Attempt)
					}
					if m.Body == "xxxx" {
						return nil
					}
					if _, err := bytesTopic.Push(ctx, c, m.Body+"x", tarry.Key("k"), tarry.ReplaceLeased(m.Token())); err != nil {
						t.Errorf("push: %v", err)
					}
					time.Sleep(lingers)
					return tarry.Settled()
				})
				stop := run(t, w)
				p := push(t, c, "q", "x", tarry.Key("k"))
				pass(time.Second)
				gone(t, c, p)
				stop()
				if got := steps.all(); !slices.Equal(got, []string{"x", "xx", "xxx", "xxxx"}) {
					t.Errorf("steps %q", got)
				}
				if n := len(rec.of(tarry.SelfSettled)); n != 3 {
					t.Errorf("%d of 3 were settled by their handler", n)
				}
				rec.none(t)
			})
		})
	}
}

// Whatever a handler returns that has settled its message, the message stays settled.
func TestSettledAndForgotten(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		end    func() error
		errors int // told OnError
	}{
		"nil":    {func() error { return nil }, 1},
		"error":  {func() error { return boom }, 2},
		"snooze": {func() error { return tarry.Snooze(time.Second) }, 1},
		"panic":  {func() error { panic("ouch") }, 2},
	} {
		for when, wait := range map[string]time.Duration{"at once": 0, "after a renewal": 6 * time.Second} {
			t.Run(name+" "+when, func(t *testing.T) {
				bubble(t, func(t *testing.T, c *tarry.Client) {
					var rec witness
					w := tarry.NewWorker(c, rec.config())
					var calls atomic.Int32
					tarry.Handle(w, bytesTopic, func(_ context.Context, m claimed) error {
						calls.Add(1)
						ackItself(t, c, m)
						time.Sleep(wait)
						return tc.end()
					})
					stop := run(t, w)
					p := push(t, c, "q", "x")
					pass(time.Hour)
					gone(t, c, p)
					stop()
					e := rec.one(t, tarry.LeaseLost)
					if !errors.Is(e.Err, tarry.ErrLeaseLost) || !strings.Contains(e.Err.Error(), "returns tarry.Settled()") || e.Duration != wait {
						t.Errorf("event %+v", e)
					}
					if calls.Load() != 1 || rec.errors.len() != tc.errors || len(rec.of(tarry.SelfSettled)) > 0 {
						t.Errorf("%d calls; told %v", calls.Load(), rec.errors.all())
					}
				})
			})
		}
	}
}

// A renewal that finds settled what the handler has settled is no trouble, nor does it
// spoil the verdict.
func TestSettledAndRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec witness
		w := tarry.NewWorker(c, rec.config())
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m claimed) error {
			ackItself(t, c, m)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, tarry.ErrLeaseLost) {
				t.Errorf("ended by %v", cause)
			}
			return tarry.Settled()
		})
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(time.Minute)
		stop()
		if e := rec.one(t, tarry.SelfSettled); e.Duration != 5*time.Second {
			t.Errorf("event %+v", e)
		}
		rec.none(t)
	})
}

// A lease that another has taken is told of, if only in the end, when the handler had
// the token.
func TestTokenDoesNotHideALostLease(t *testing.T) {
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			return []engine.Settled{{Err: engine.ErrLeaseLost}}, nil
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec witness
		w := tarry.NewWorker(c, rec.config())
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m claimed) error {
			if m.Attempt > 1 {
				return nil
			}
			_ = m.Token()
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		})
		stop := run(t, w)
		push(t, c, "q", "x")
		pass(time.Minute)
		stop()
		if e := rec.one(t, tarry.LeaseLost); e.Duration != 6*time.Second {
			t.Errorf("event %+v", e)
		}
	})
}

// What was said to be settled and is not comes again when its lease has lapsed.
func TestSettledInWordsOnly(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		var rec witness
		w := tarry.NewWorker(c, rec.config())
		var at list[time.Duration]
		start := time.Now()
		tarry.Handle(w, bytesTopic, func(_ context.Context, m claimed) error {
			if n := at.add(time.Since(start)); m.Attempt != uint32(n) {
				t.Errorf("call %d has attempt %d", n, m.Attempt)
			}
			if m.Attempt == 1 {
				time.Sleep(12 * time.Second)
				return tarry.Settled()
			}
			return nil
		})
		stop := run(t, w)
		p := push(t, c, "q", "x")
		pass(time.Minute)
		gone(t, c, p)
		stop()
		// Renewed at 5 and 10 s, and not after the handler had returned.
		if a := at.all(); len(a) != 2 || a[1] != 20*time.Second {
			t.Errorf("handled at %v; want 0 and 20 s", a)
		}
		rec.none(t)
	})
}

func TestClaimSettledByItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		p := push(t, c, "q", "x", tarry.Key("k"))
		err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(_ context.Context, m claimed) error {
			ackItself(t, c, m)
			return tarry.Settled()
		})
		if err != nil {
			t.Error(err)
		}
		gone(t, c, p)
		push(t, c, "q", "y", tarry.Key("k"))
		err = bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(_ context.Context, m claimed) error {
			ackItself(t, c, m)
			return nil
		})
		if !errors.Is(err, tarry.ErrLeaseLost) {
			t.Errorf("claim of a message that its handler settled, and did not say so: %v", err)
		}
		if token := (&tarry.Message[string]{}).Token(); token != "" {
			t.Errorf("a message of nobody has the token %q", token)
		}
		if err := (&tarry.Message[string]{}).Settle(t.Context(), c, tarry.Settlement{Do: tarry.DoAck}); err == nil {
			t.Error("a message of nobody was settled")
		}
	})
}
