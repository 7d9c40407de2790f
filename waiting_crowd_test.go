package tarry_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// slowLeases takes some time for each lease, so that others come meanwhile.
type slowLeases struct{ *stage }

func (e *slowLeases) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	time.Sleep(3 * time.Millisecond)
	return e.stage.Lease(ctx, wants)
}

// TestCrowdGetsWhatIsDue: a call has room for some of the leases of a queue only. The others
// do not wait, but still get messages while there are more.
func TestCrowdGetsWhatIsDue(t *testing.T) {
	for name, most := range map[string]int{"of one message": 1, "of as many as a call brings": engine.MaxLease} {
		t.Run(name, func(t *testing.T) {
			bubbleOn(t, &slowLeases{newStage()}, func(t *testing.T, c *tarry.Client) {
				crowd := 40
				if most > 1 {
					crowd = 3
				}
				for i := range crowd * most {
					push(t, c, "q", strconv.Itoa(i))
				}
				var some sync.WaitGroup
				var none atomic.Int32
				for range crowd {
					some.Go(func() {
						got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: most})
						if err != nil {
							t.Error(err)
						}
						if len(got.Messages) == 0 {
							none.Add(1)
						}
					})
				}
				some.Wait()
				if none.Load() > 0 {
					q, err := c.Queue(t.Context(), "q")
					t.Errorf("%d of %d leases got nothing, though %d messages are ready, %v", none.Load(), crowd, q.Ready, err)
				}
			})
		})
	}
}

// TestLeaseWithoutAWaitBesideALargeWorker: a worker has room for all that each call brings. A
// lease without a wait does not wait until all that is ready has gone to the worker, nor for a
// call that hangs and does not include it.
func TestLeaseWithoutAWaitBesideALargeWorker(t *testing.T) {
	for name, took := range map[string]time.Duration{"quick": 100 * time.Millisecond, "hanging": 15 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			var calls atomic.Int32
			s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
				if calls.Add(1) < 3 {
					time.Sleep(100 * time.Millisecond)
					return s.Engine.Lease(ctx, wants)
				}
				select {
				case <-time.After(took):
					return s.Engine.Lease(ctx, wants)
				case <-ctx.Done():
					return engine.Grant{}, ctx.Err()
				}
			}
			bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
				pushBurst(t, c, "q", 20*engine.MaxLease)
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 8 * engine.MaxLease})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
				defer run(t, w)()
				time.Sleep(10 * time.Millisecond)
				start := time.Now()
				got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
				if took := time.Since(start); took > 1200*time.Millisecond || err != nil {
					t.Errorf("%d messages, %v, after %v", len(got.Messages), err, took)
				}
			})
		})
	}
}
