package tarry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// An answer tells how long the call had waited for what it brings.
func TestLeaseTellsHowLongItWaited(t *testing.T) {
	bubble(t, func(t *testing.T, c *tarry.Client) {
		l := leaserOf(t, c, []string{"q"})
		defer l.Close()
		req := tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Minute}
		for name, lease := range map[string]func(context.Context, tarry.LeaseRequest) (tarry.LeasedMessages, error){"Client": c.Lease, "Leaser": l.Lease} {
			push(t, c, "q", "x", tarry.In(7*time.Second))
			if got, err := lease(t.Context(), req); err != nil || got.Waited != 7*time.Second {
				t.Errorf("%s: it waited for %v, %v", name, got.Waited, err)
			}
		}
	})
}

// late is an engine that waits, and tells how long it did.
type late struct {
	*waiter
	extended atomic.Int32
}

func (l *late) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	start := time.Now()
	got, err := l.waiter.LeaseWait(ctx, w)
	got.Waited = time.Since(start)
	return got, err
}

// A lease that came at the end of a long wait counts from then, and needs no renewal
// before its handler begins.
func TestLeaseCountsFromTheEndOfTheWait(t *testing.T) {
	l := &late{waiter: newWaiter()}
	l.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		for _, s := range in {
			if s.Do == engine.Extend {
				l.extended.Add(1)
			}
		}
		return l.Engine.Settle(ctx, in)
	}
	bubbleOn(t, l, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 5 * time.Second})
		left := make(chan time.Duration, 1)
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			left <- time.Until(m.Deadline())
			return nil
		})
		stop := run(t, w)
		push(t, c, "q", "x", tarry.In(12*time.Second))
		if d := <-left; d != 5*time.Second {
			t.Errorf("%v are left of a lease of 5 s", d)
		}
		if n := l.extended.Load(); n != 0 {
			t.Errorf("it was renewed %d times", n)
		}
		stop()
	})
}

// The clock that an answer tells is not behind what it hands out, in whatever calls that
// was leased.
func TestAnswerIsNotOlderThanItsLeases(t *testing.T) {
	s := newStage()
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		time.Sleep(3 * time.Millisecond)
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		for _, q := range []string{"a", "b"} {
			pushBurst(t, c, q, 5)
		}
		const ttr = time.Minute
		got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"a", "b", "c", "d"}, Max: 8, LeaseOptions: tarry.LeaseOptions{TTR: ttr}})
		if err != nil || len(got.Messages) < 6 {
			t.Fatalf("%d messages, %v", len(got.Messages), err)
		}
		for _, m := range got.Messages {
			if leased := m.Deadline.Add(-ttr); leased.After(got.Now) {
				t.Errorf("leased at %v, by an answer of %v", leased, got.Now)
			}
		}
	})
}
