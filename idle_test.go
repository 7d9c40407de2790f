package tarry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// A worker that has nothing to do for hours wakes up all the same, also when the
// engine took long to say so.
func TestWorkerIdlesForHours(t *testing.T) {
	s := newStage()
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		time.Sleep(50 * time.Millisecond)
		return s.Engine.Lease(ctx, wants)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, nil)
		var got list[string]
		tarry.Handle(w, bytesTopic, func(_ context.Context, m *tarry.Message[string]) error {
			got.add(m.Body)
			return nil
		})
		stop := run(t, w)
		pass(3 * time.Hour)
		push(t, c, "q", "x")
		pass(time.Second)
		if got.len() != 1 {
			t.Errorf("handled %v", got.all())
		}
		stop()
	})
}

// Leases that nobody has room for are given back beside the rest: an engine that hangs
// in it holds up nobody.
func TestGivingBackHoldsUpNobody(t *testing.T) {
	inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
		push(t, c, "gone", "x")
		ctx, leave := context.WithCancel(t.Context())
		e.befall(hangs, "Lease")
		go func() {
			_, _ = c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"gone"}, Max: 1, Wait: time.Hour})
		}()
		synctest.Wait()
		leave() // what the call under way brings is nobody's
		time.Sleep(time.Millisecond)
		e.recover()
		e.befall(hangs, "Settle")
		got := make(chan time.Duration, 1)
		start := time.Now()
		go func() {
			l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"other"}, Max: 1, Wait: time.Minute})
			if err != nil || len(l.Messages) != 1 {
				t.Errorf("%v, %v", l.Messages, err)
			}
			got <- time.Since(start)
		}()
		time.Sleep(100 * time.Millisecond)
		push(t, c, "other", "y")
		if took := <-got; took > time.Second {
			t.Errorf("the other queue's message came after %v", took)
		}
	})
}
