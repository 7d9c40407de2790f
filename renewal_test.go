package tarry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// renewing runs a worker with as many handlers as messages, which each run for so long, on
// an engine whose renewals go through extend, and fails the test if a lease is lost. The
// messages fall due within spread. It returns the worker's looks.
func renewing(t *testing.T, ttr, long, spread time.Duration, n int, extend func(s *stage, ctx context.Context, in []engine.Settlement) ([]engine.Settled, error)) (looks int) {
	t.Helper()
	s := newStage()
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do == engine.Extend {
			return extend(s, ctx, in)
		}
		return s.Engine.Settle(ctx, in)
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		var begun, kept atomic.Int32
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: n, LeaseTTR: ttr, Observer: rec.observe})
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			begun.Add(1)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(long):
				kept.Add(1)
				return nil
			}
		})
		for i := range n {
			push(t, c, "q", fmt.Sprint(i), tarry.In(spread*time.Duration(i)/time.Duration(n)))
		}
		stop := run(t, w)
		pass(spread + long + time.Second)
		if begun.Load() != int32(n) || kept.Load() != int32(n) || len(rec.of(tarry.LeaseLost)) > 0 {
			t.Errorf("of %d handlers %d began, %d kept their lease", n, begun.Load(), kept.Load())
		}
		looks = tarry.Holds(w).Looks
		stop()
	})
	return looks
}

// One renewal that hangs costs no lease: others are made beside it.
func TestHungRenewalIsRepeated(t *testing.T) {
	for _, ttr := range []time.Duration{time.Second, 8 * time.Second, time.Minute, time.Hour} {
		for _, hung := range []int32{1, 2, 3} {
			t.Run(fmt.Sprint(hung, " of ", ttr), func(t *testing.T) {
				var calls atomic.Int32
				renewing(t, ttr, 3*ttr, 0, 1, func(s *stage, ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
					if calls.Add(1) <= hung {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return s.Engine.Settle(ctx, in)
				})
				if n := calls.Load(); n < hung+4 || n > hung+8 {
					t.Errorf("%d renewals", n)
				}
			})
		}
	}
}

// A slow engine renews leases that are hardly longer than its answers take.
func TestSlowRenewalsCount(t *testing.T) {
	const ttr = 400 * time.Millisecond
	var calls atomic.Int32
	renewing(t, ttr, 10*time.Second, 0, 10, func(s *stage, ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		calls.Add(1)
		out, err := s.Engine.Settle(ctx, in)
		time.Sleep(150 * time.Millisecond)
		return out, err
	})
	if n := calls.Load(); n > 400 {
		t.Errorf("%d renewals", n)
	}
}

// An answer that comes after the deadline counts: the engine has renewed the lease, and
// the worker goes on to renew it while its handler ends.
func TestLateRenewalCounts(t *testing.T) {
	s := newStage()
	var began time.Time
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		out, err := s.Engine.Settle(ctx, in)
		if late := 10500 * time.Millisecond; in[0].Do == engine.Extend && time.Since(began) < late {
			time.Sleep(late - time.Since(began))
		}
		return out, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var begun atomic.Int32
		handler := func(ctx context.Context, _ *tarry.Message[string]) error {
			if begun.Add(1) > 1 {
				return nil
			}
			<-ctx.Done()
			if after := time.Since(began); after != 10*time.Second {
				t.Errorf("its context ended after %s", after)
			}
			time.Sleep(9 * time.Second) // more than what the first renewal gave
			return nil
		}
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, Observer: rec.observe})
		tarry.Handle(w, bytesTopic, handler)
		began = time.Now()
		stop := run(t, w)
		push(t, c, "q", "x")
		synctest.Wait()
		other := tarry.New(s.Engine, nil) // another process
		w2 := tarry.NewWorker(other, nil)
		tarry.Handle(w2, bytesTopic, handler)
		stop2 := run(t, w2)
		pass(time.Minute)
		if n := begun.Load(); n != 1 {
			t.Errorf("begun %d times; want it kept from others", n)
		}
		rec.one(t, tarry.LeaseLost)
		rec.one(t, tarry.Acked)
		stop()
		stop2()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Many leases that end at different times are renewed by few calls and few looks.
func TestManyRenewalsNeedFewCalls(t *testing.T) {
	const n, ttr = 10_000, time.Minute
	var calls, renewed atomic.Int64
	looks := renewing(t, ttr, 3*ttr, ttr/2, n, func(s *stage, ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		calls.Add(1)
		renewed.Add(int64(len(in)))
		return s.Engine.Settle(ctx, in)
	})
	t.Logf("%d calls, %d renewals, %d looks", calls.Load(), renewed.Load(), looks)
	if renewed.Load() < 5*n || renewed.Load() > 8*n {
		t.Errorf("%d leases were renewed %d times in three of their lengths", n, renewed.Load())
	}
	if calls.Load() > 200 { // 16 a length, of at most 1000 leases each
		t.Errorf("%d calls", calls.Load())
	}
	if int64(looks) > 3*renewed.Load() {
		t.Errorf("the keeper has looked %d times at a delivery for %d renewals", looks, renewed.Load())
	}
}
