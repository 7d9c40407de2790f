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

// A worker that leased nothing more since too many of its results waited for the engine
// goes on when the engine has them.
func TestWorkerGoesOnWhenItsResultsAreTold(t *testing.T) {
	s := newStage()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		let := make(chan struct{})
		s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
			<-let
			return s.Engine.Settle(ctx, in)
		}
		const all = 8000
		for range all / 1000 {
			pushBurst(t, c, "q", 1000)
		}
		var handled atomic.Int32
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error { handled.Add(1); return nil })
		stop := run(t, w)
		pass(time.Second)
		if n := handled.Load(); n < 4096 || n > 4096+1200 {
			t.Errorf("%d of %d are handled while the engine takes no results", n, all)
		}
		close(let)
		pass(time.Second)
		if n := handled.Load(); n != all {
			t.Errorf("%d of %d are handled when it took them", n, all)
		}
		stop()
	})
}

// generous is an engine whose other side leases more of a queue than it is asked for.
type generous struct{ *waiter }

func (g *generous) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	w.Max, w.Room = 10, nil
	return g.waiter.LeaseWait(ctx, w)
}

// What came beyond the slots of a queue begins as soon as these are free.
func TestFreedSlotGoesToWhatWaitsForIt(t *testing.T) {
	bubbleOn(t, &generous{newWaiter()}, func(t *testing.T, c *tarry.Client) {
		pushBurst(t, c, "q", 3)
		var begun list[time.Duration]
		start := time.Now()
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
			begun.add(time.Since(start))
			time.Sleep(10 * time.Millisecond)
			return nil
		}, tarry.Concurrency(1))
		stop := run(t, w)
		pass(time.Minute)
		if at := begun.all(); len(at) != 3 || at[2] != at[0]+20*time.Millisecond {
			t.Errorf("they begin at %v", at)
		}
		stop()
		synctest.Wait()
	})
}
