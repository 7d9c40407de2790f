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

// asleep is a stage whose renewals come to nothing while it sleeps, as those of a
// process that is stopped.
func asleep() (s *stage, sleeps *atomic.Bool) {
	s, sleeps = newStage(), new(atomic.Bool)
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if sleeps.Load() && in[0].Do == engine.Extend {
			return nil, engine.ErrUnavailable
		}
		return s.Engine.Settle(ctx, in)
	}
	return s, sleeps
}

// Within what a handler has asked for nobody else gets its message, though nothing
// renews the lease; without it another does.
func TestExtendKeepsAMessageFromOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		by       time.Duration
		attempts int
	}{"extended": {time.Hour, 1}, "not extended": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			s, sleeps := asleep()
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				var attempts list[uint32]
				handler := func(ctx context.Context, m *tarry.Message[string]) error {
					attempts.add(m.Attempt)
					if m.Attempt > 1 {
						return nil
					}
					start := time.Now()
					if left := time.Until(m.Deadline()); left != 10*time.Second {
						t.Errorf("the lease ends in %s, want 10 s", left)
					}
					if tc.by > 0 {
						if err := m.Extend(ctx, tc.by); err != nil {
							t.Error(err)
						}
						if end := m.Deadline().Sub(start); end != tc.by {
							t.Errorf("the lease ends after %s, want %s", end, tc.by)
						}
					}
					sleeps.Store(true)
					time.Sleep(59 * time.Minute)
					return ctx.Err()
				}
				var stops []func()
				for range 2 {
					w := tarry.NewWorker(c, nil)
					tarry.Handle(w, bytesTopic, handler)
					stops = append(stops, run(t, w))
				}
				p := push(t, c, "q", "x", tarry.TTR(10*time.Second))
				pass(2 * time.Hour)
				if attempts.len() != tc.attempts {
					t.Errorf("attempts %v, want %d", attempts.all(), tc.attempts)
				}
				gone(t, c, p)
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}

// An extended lease is renewed by the usual time near its end, and a step of the
// clock, which has all leases renewed, makes none shorter.
func TestExtendedLeaseIsRenewedNearItsEnd(t *testing.T) {
	s := newStage()
	var asked list[time.Duration]
	var start time.Time
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			asked.add(time.Since(start))
			asked.add(in[0].TTR)
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var ends list[time.Duration]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			start = time.Now()
			for _, by := range []time.Duration{time.Hour, time.Minute} { // the second makes it no shorter
				if err := m.Extend(ctx, by); err != nil {
					t.Error(err)
				}
				ends.add(m.Deadline().Sub(start))
			}
			time.Sleep(time.Hour)
			ends.add(m.Deadline().Sub(start))
			return ctx.Err()
		})
		stop := run(t, w)
		p := push(t, c, "q", "x", tarry.TTR(10*time.Second))
		pass(2 * time.Hour)
		if got := ends.all(); len(got) != 3 || got[0] != time.Hour || got[1] != time.Hour || got[2] != time.Hour+5*time.Second && got[2] != time.Hour+10*time.Second {
			t.Errorf("the lease ended after %v", got)
		}
		if got := asked.all(); len(got) < 6 || got[1] != time.Hour || got[3] != time.Hour || got[4] != time.Hour-5*time.Second || got[5] != 0 {
			t.Errorf("asked %v", got)
		}
		gone(t, c, p)
		stop()
	})
}

func TestExtendOfALostLease(t *testing.T) {
	s, sleeps := asleep()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var taken, ended, past list[error]
		var kept *tarry.Message[string]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			if m.Attempt > 1 {
				return nil
			}
			kept = m
			if err := m.Extend(ctx, 25*time.Hour); !errors.Is(err, tarry.ErrInvalid) {
				t.Errorf("for 25 h: %v", err)
			}
			sleeps.Store(true)
			if err := m.Extend(ctx, time.Minute); !errors.Is(err, tarry.ErrUnavailable) {
				t.Errorf("the engine does not answer: %v", err)
			}
			<-ctx.Done()
			ended.add(m.Extend(ctx, time.Hour))
			taken.add(m.Extend(context.Background(), time.Hour))
			return ctx.Err()
		})
		stop := run(t, w)
		push(t, c, "q", "x", tarry.TTR(10*time.Second))
		pass(time.Minute)
		past.add(kept.Extend(t.Context(), time.Hour))
		for what, errs := range map[string]*list[error]{"with the handler's context": &ended, "with another": &taken, "when the handler has returned": &past} {
			if got := errs.all(); len(got) != 1 || !errors.Is(got[0], tarry.ErrLeaseLost) {
				t.Errorf("%s: %v, want ErrLeaseLost", what, got)
			}
		}
		stop()
	})
}

// The engine alone knows that the message is another's.
func TestExtendSaysThatTheLeaseWasTaken(t *testing.T) {
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			return []engine.Settled{{Err: engine.ErrLeaseLost}}, nil
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var got list[error]
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			got.add(m.Extend(context.Background(), time.Hour))
			got.add(context.Cause(ctx))
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x")
		synctest.Wait()
		for _, err := range got.all() {
			if !errors.Is(err, tarry.ErrLeaseLost) {
				t.Errorf("%v, want ErrLeaseLost", err)
			}
		}
		if got.len() != 2 {
			t.Errorf("got %v", got.all())
		}
		stop()
	})
}

func TestExtendWhereThereIsNothingToExtend(t *testing.T) {
	var made tarry.Message[string]
	if err := made.Extend(t.Context(), time.Hour); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("a message that nobody leased: %v", err)
	}
	s := newStage()
	s.caps = func(caps *engine.Capabilities) { caps.Extend = false }
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"))
		err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(ctx context.Context, m *tarry.Message[string]) error {
			return m.Extend(ctx, time.Hour)
		})
		if !errors.Is(err, tarry.ErrUnsupported) {
			t.Errorf("an engine that extends nothing: %v", err)
		}
	})
}
