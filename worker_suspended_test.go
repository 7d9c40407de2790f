package tarry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// wallAhead is t as if the wall clock had gone on by whole seconds while the
// monotonic clock stood still, as when the machine was suspended. In a synctest
// bubble there is no monotonic clock.
func wallAhead(t time.Time, d time.Duration) time.Time {
	type layout struct {
		wall uint64 // 1 bit of flags, 33 bits of seconds, 30 of nanoseconds
		ext  int64  // the monotonic clock
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&t)).wall += uint64(d/time.Second) << 30
	return t
}

func TestWorkerOfASuspendedMachineStartsNothingThatIsOver(t *testing.T) {
	if now := time.Now(); wallAhead(now, time.Hour).Sub(now) != 0 || wallAhead(now, time.Hour).Round(0).Sub(now.Round(0)) != time.Hour {
		t.Fatal("package time has another layout; mend wallAhead")
	}
	var slept atomic.Int64
	now := func() time.Time { return wallAhead(time.Now(), time.Duration(slept.Load())) }
	s := newStage()
	s.Engine = memengine.New(&memengine.Config{Now: now})
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		if len(g.Queues[0].Messages) > 0 {
			slept.Store(int64(time.Hour))
			stall(t, s, 0)
		}
		return g, err
	}
	s.push, s.settle, s.watch = s.Engine.Push, s.Engine.Settle, s.Engine.Watch
	c := tarry.New(s, nil)
	defer c.Close()
	tarry.SetClock(c, now)
	ctx, cancel := context.WithCancel(t.Context())
	var rec record
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
		rec.observe(e)
		cancel()
	}})
	tarry.Handle(w, bytesTopic, func(context.Context, *tarry.Message[string]) error {
		t.Error("a handler started")
		return nil
	})
	push(t, c, "q", "x", tarry.Key("k"))
	if err := w.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	rec.one(t, tarry.LeaseLost)
}

// The worker stalls before its k-th look at the clock, for every k; while it does
// its lease lapses and the message is cancelled.
func TestWorkerStalledAnywhereStartsNothingThatIsOver(t *testing.T) {
	const ttr = 2 * time.Millisecond
	refused := 0
	for k := int64(1); ; k++ {
		var looks atomic.Int64
		var off atomic.Int64
		var cancelled, handled atomic.Bool
		s := newStage()
		s.Engine = memengine.New(&memengine.Config{Now: func() time.Time { return time.Now().Add(time.Duration(off.Load())) }})
		s.push, s.lease, s.settle = s.Engine.Push, s.Engine.Lease, s.Engine.Settle
		s.watch = func(func(string)) func() { return func() {} }
		bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
			w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: ttr, Concurrency: 1})
			yes := func(context.Context, *tarry.Message[string]) (bool, error) { return true, nil }
			tarry.Handle(w, bytesTopic.OnlyIf(yes), func(context.Context, *tarry.Message[string]) error {
				if handled.Store(true); cancelled.Load() {
					t.Errorf("stalled before look %d, and started what had been cancelled", k)
				}
				return nil
			})
			push(t, c, "q", "x", tarry.Key("k"))
			tarry.SetWorkerClock(w, func() time.Time {
				if looks.Add(1) == k {
					off.Store(int64(5 * ttr))
					errs, err := s.Cancel(context.Background(), []engine.Ref{{Queue: "q", Key: "k"}})
					cancelled.Store(err == nil && errs[0] == nil)
				}
				return time.Now().Add(time.Duration(off.Load()))
			})
			stop := run(t, w)
			pass(time.Second)
			stop()
		})
		if cancelled.Load() && !handled.Load() {
			refused++
		}
		if looks.Load() < k {
			break
		}
	}
	if refused == 0 {
		t.Error("no stall came between a lease and its handler")
	}
}
