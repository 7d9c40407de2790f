package tarry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// A message whose time to run is over before any handler can begin uses its attempts
// up and dies; it does not go round for ever.
func TestTTRShorterThanTheWayToTheEngine(t *testing.T) {
	s := newStage()
	leases := 0
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		leases++
		g, err := s.Engine.Lease(ctx, wants)
		time.Sleep(3 * time.Millisecond)
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		out, err := s.Engine.Settle(ctx, in)
		time.Sleep(3 * time.Millisecond)
		return out, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"), tarry.TTR(time.Millisecond), tarry.MaxAttempts(3), tarry.Backoff(time.Second), tarry.Isolate(false))
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { return nil })
		stop := run(t, w)
		pass(10 * time.Second)
		info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q"))
		if err != nil || info.State != tarry.Dead || leases > 20 {
			t.Errorf("after %d leases it is %s at attempt %d, %q, %v", leases, info.State, info.Attempt, info.LastError, err)
		}
		stop()
	})
}

// Settlements of a caller who left are his again.
func TestSettlementOfACallerWhoLeftIsHis(t *testing.T) {
	inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
		push(t, c, "q", "x", tarry.Key("k"))
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
		if err != nil || len(l.Messages) != 1 {
			t.Fatal(l, err)
		}
		e.befall(hangs, "Settle")
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		when := engine.When{In: time.Hour}
		_, _ = c.Settle(ctx, []tarry.Settlement{{Token: l.Messages[0].Token, Do: engine.Snooze, When: &when}})
		when.In = 0
		e.recover()
		synctest.Wait()
		if info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q")); err != nil || info.State != tarry.Scheduled {
			t.Errorf("the message is %s, %v", info.State, err)
		}
	})
}
