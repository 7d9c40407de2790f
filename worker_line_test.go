package tarry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// far returns a stage whose calls of Lease and Settle take a while, as across a
// network, and that counts what was leased and not given back; handlers take off what
// they have handled.
func far(trip time.Duration) (s *stage, held, most *atomic.Int64) {
	s, held, most = newStage(), new(atomic.Int64), new(atomic.Int64)
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		time.Sleep(trip / 2)
		g, err := s.Engine.Lease(ctx, wants)
		for _, q := range g.Queues {
			if n := held.Add(int64(len(q.Messages))); n > most.Load() {
				most.Store(n)
			}
		}
		time.Sleep(trip / 2)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		for _, x := range in {
			if x.Do == engine.Release {
				held.Add(-1)
			}
		}
		time.Sleep(trip)
		return s.Engine.Settle(ctx, in)
	}
	return s, held, most
}

func pushBurst(t *testing.T, c *tarry.Client, queue string, n int) {
	t.Helper()
	for i := range n {
		push(t, c, queue, fmt.Sprint(i))
	}
}

// A worker far from its engine does not wait for an answer whenever its slots are
// done: ten slots at ten milliseconds a trip were a thousand messages a second.
func TestWorkerLeasesAhead(t *testing.T) {
	s, _, _ := far(10 * time.Millisecond)
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		const n = 5000
		pushBurst(t, c, "q", n)
		var handled atomic.Int64
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			handled.Add(1)
			return nil
		})
		stop := run(t, w)
		pass(1500 * time.Millisecond)
		if got := handled.Load(); got != n {
			t.Errorf("%d handled in one and a half seconds; want all of %d", got, n)
		}
		stop()
	})
}

// Who is slow leases what it has slots for, however far the engine is.
func TestWorkerThatIsSlowLeasesLittleAhead(t *testing.T) {
	s, held, most := far(10 * time.Millisecond)
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		pushBurst(t, c, "q", 1000)
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			time.Sleep(time.Second)
			held.Add(-1)
			return nil
		})
		stop := run(t, w)
		pass(30 * time.Second)
		if n := most.Load(); n < 10 || n > 12 {
			t.Errorf("%d messages were leased at a time; want hardly more than its 10 slots", n)
		}
		stop()
	})
}

// What was leased ahead by quick handlers goes back when they become slow, its attempt
// not counted, and others can have it.
func TestWorkerGivesBackWhatItCannotBegin(t *testing.T) {
	s, held, most := far(10 * time.Millisecond)
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		const n = 8000
		pushBurst(t, c, "q", n)
		var handled, counted atomic.Int64
		healed := make(chan struct{})
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			if m.Attempt != 1 {
				counted.Add(1)
			}
			if handled.Add(1) > n/2 {
				<-healed
			}
			held.Add(-1)
			return nil
		})
		stop := run(t, w)
		pass(2 * time.Second)
		if most.Load() < 50 {
			t.Errorf("at most %d messages were held: nothing was leased ahead", most.Load())
		}
		if n := held.Load(); n != 10 {
			t.Errorf("%d messages are held; want the 10 that are handled", n)
		}
		close(healed)
		pass(10 * time.Second)
		stop()
		if handled.Load() != n || counted.Load() != 0 {
			t.Errorf("%d handled of %d; %d attempts were counted that never began", handled.Load(), n, counted.Load())
		}
	})
}

// An orderly end gives back at once all that was not begun, and counts no attempt of it.
func TestWorkerDrainGivesBackTheLine(t *testing.T) {
	for name, closes := range map[string]bool{"its context ends": false, "its client is closed": true} {
		t.Run(name, func(t *testing.T) {
			s, held, _ := far(10 * time.Millisecond)
			synctest.Test(t, func(t *testing.T) {
				c := tarry.New(s, nil)
				const n = 8000
				pushBurst(t, c, "q", n)
				var handled atomic.Int64
				half := make(chan struct{})
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
					if handled.Add(1) == n/2 {
						close(half)
					}
					held.Add(-1)
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				<-half
				if closes {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				} else {
					cancel()
				}
				if err := <-done; closes != errors.Is(err, tarry.ErrClosed) || !closes && err != nil {
					t.Errorf("Run: %v", err)
				}
				if held.Load() != 0 {
					t.Errorf("%d messages are held after the drain", held.Load())
				}
				c2 := tarry.New(s.Engine, nil)
				info, err := c2.Queue(t.Context(), "q")
				if err != nil || int64(info.Ready) != n-handled.Load() || info.Leased != 0 {
					t.Errorf("%d of %d were handled, and the queue holds %+v, %v", handled.Load(), n, info, err)
				}
				for m, err := range c2.List(t.Context(), "q", tarry.Ready) {
					if err != nil || m.Attempt != 0 {
						t.Fatalf("message %s was not begun and has attempt %d, %v", m.ID, m.Attempt, err)
					}
				}
				if err := errors.Join(c.Close(), c2.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A message alone in its queue does not wait for the thousands of another that are
// leased ahead, whether its queue has a bound of its own or not.
func TestWorkerLineIsFair(t *testing.T) {
	for name, opts := range map[string][]tarry.HandleOption{"unbound": nil, "bound": {tarry.Concurrency(1)}} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := far(10 * time.Millisecond)
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				pushBurst(t, c, "crowd", 8000)
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10})
				tarry.Handle(w, tarry.NewTopic[string]("crowd"), func(context.Context, *tarry.Message[string]) error {
					time.Sleep(time.Millisecond)
					return nil
				})
				lone := make(chan time.Duration, 10)
				tarry.Handle(w, tarry.NewTopic[string]("lone"), func(_ context.Context, m *tarry.Message[string]) error {
					lone <- time.Since(m.Due)
					return nil
				}, opts...)
				stop := run(t, w)
				pass(200 * time.Millisecond)
				for i := range 5 {
					push(t, c, "lone", fmt.Sprint(i))
					if d := <-lone; d > 100*time.Millisecond {
						t.Errorf("a lone message was handled after %s", d)
					}
				}
				stop()
			})
		})
	}
}
