package tarry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// Slots that became free while others waited in line are asked for when the line is
// through, also when no handler ends any more.
func TestWorkerFillsItsSlotsBehindTheLine(t *testing.T) {
	for name, wait := range map[string]bool{"asked": false, "waiting": true} {
		t.Run(name, func(t *testing.T) {
			e := newTroubled()
			e.caps = func(caps *engine.Capabilities) { caps.LeaseWait = wait }
			bubbleOn(t, e, func(t *testing.T, c *tarry.Client) {
				const slots = 10
				var begun, running atomic.Int64
				enough := make(chan struct{})
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: slots})
				tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
					if begun.Add(1) > slots/2 {
						running.Add(1)
						<-enough
					}
					return nil
				})
				pushBurst(t, c, "q", 5*slots)
				stop := run(t, w)
				pass(time.Second)
				if n := running.Load(); n != slots {
					t.Errorf("%d handlers run; want %d", n, slots)
				}
				close(enough)
				stop()
			})
		})
	}
}

// One message in line alone goes back as soon as several do.
func TestWorkerGivesBackOneThatWaitsAlone(t *testing.T) {
	s, _, _ := far(10 * time.Millisecond)
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		block, begun := make(chan struct{}), make(chan struct{})
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 1, LeaseTTR: time.Hour})
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			if m.Body == "slow" {
				close(begun)
				<-block
			} else {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		stop := run(t, w)
		pushBurst(t, c, "q", 1000)
		pass(500 * time.Millisecond)
		push(t, c, "q", "slow", tarry.Priority(0))
		<-begun
		for range 20 { // while the rate of the handlers is still believed in
			push(t, c, "q", "behind", tarry.Priority(0))
			pass(10 * time.Millisecond)
		}
		pass(time.Second)
		if info, err := c.Queue(t.Context(), "q"); err != nil || info.Leased != 1 {
			t.Errorf("%d are leased, %v; want the one that is handled", info.Leased, err)
		}
		close(block)
		pass(10 * time.Second)
		stop()
	})
}

// Leases that had to be renewed before anything could begin are begun then, however
// long that took.
func TestWorkerBeginsWhatTookLongToRenew(t *testing.T) {
	s := newStage()
	var released atomic.Int64
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		time.Sleep(500 * time.Millisecond)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			out, err := s.Engine.Settle(ctx, in)
			time.Sleep(150 * time.Millisecond)
			return out, err
		}
		for _, x := range in {
			if x.Do == engine.Release {
				released.Add(1)
			}
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var handled atomic.Int64
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 10, LeaseTTR: 400 * time.Millisecond})
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			handled.Add(1)
			return nil
		})
		pushBurst(t, c, "q", 100)
		stop := run(t, w)
		pass(20 * time.Second)
		if handled.Load() != 100 || released.Load() != 0 {
			t.Errorf("%d of 100 were handled, %d given back; want none of these", handled.Load(), released.Load())
		}
		stop()
	})
}

// angry is an error whose methods panic when they are asked.
type angry struct{}

func (angry) Error() string { return "angry" }
func (angry) Is(error) bool { panic("do not compare") }

// An error whose Is panics is a failure like any other, also in a drain.
func TestWorkerDrainOutlivesAnErrorThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{DrainTimeout: -1})
		tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
			<-ctx.Done()
			return angry{}
		})
		p := push(t, c, "q", "x")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		cancel()
		<-done
		if info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q")); err != nil || info.State != tarry.Scheduled || info.Attempt != 1 {
			t.Errorf("the message is %s at attempt %d, %v", info.State, info.Attempt, err)
		}
	})
}
