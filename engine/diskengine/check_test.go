package diskengine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// random makes a random call. What it answers is for others to look at.
func random(ctx context.Context, e *diskengine.Engine, rng *rand.Rand, leases *[]engine.Lease) error {
	queue := fmt.Sprint("q", rng.IntN(3))
	message := func() engine.Message {
		m := engine.Message{Queue: queue, Due: engine.When{In: time.Duration(rng.IntN(3000)-1000) * time.Millisecond}, OnConflict: engine.Conflict(rng.IntN(5))}
		m.Body = make([]byte, rng.IntN(100))
		m.Remember = time.Duration(rng.IntN(2)) * time.Minute
		m.ExpireAfter = time.Duration(rng.IntN(3)) * time.Second
		m.MaxAttempts = 1 + rng.Uint32N(3)
		if rng.IntN(4) > 0 {
			m.Key = fmt.Sprint("k", rng.IntN(12))
		}
		return m
	}
	messages := func() (all []engine.Message) {
		for range 1 + rng.IntN(4) {
			all = append(all, message())
		}
		return all
	}
	switch op := rng.IntN(20); {
	case op < 7:
		_, err := e.Push(ctx, messages())
		return err
	case op < 8:
		results, err := e.PushAtomic(ctx, messages())
		if results != nil {
			return nil // one was refused
		}
		return err
	case op < 11:
		grant, err := e.Lease(ctx, []engine.Want{{Queue: queue, Max: 3, Remote: rng.IntN(2) == 0}})
		if err == nil {
			*leases = append(*leases, grant.Queues[0].Messages...)
		}
		return err
	case op < 15 && len(*leases) > 0:
		s := engine.Settlement{Token: (*leases)[0].Token, Do: engine.Ack + engine.Action(rng.IntN(3))}
		*leases = (*leases)[1:]
		_, err := e.Settle(ctx, []engine.Settlement{s})
		return err
	case op < 18:
		_, err := e.Cancel(ctx, []engine.Ref{{Queue: queue, Key: fmt.Sprint("k", rng.IntN(12))}})
		return err
	case op < 19:
		_, err := e.Redrive(ctx, queue, nil, 3)
		return err
	case rng.IntN(4) == 0:
		_, err := e.Purge(ctx, queue, engine.PurgeAlso(rng.IntN(4)))
		return err
	}
	return nil
}

// TestStoresAreSound makes random calls, flushed and merged all the time, lets the power go within
// them, and checks what is left: whatever a crash may leave is sound, and so is what was closed.
// It flushes itself, since what flushes in the background may get no processor before the calls end.
func TestStoresAreSound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var losses, tables, torn atomic.Int64
	for k := range uint64(disktest.Thorough(4, 50)) {
		rng, clock, calls := rand.New(rand.NewPCG(seed, k)), enginetest.NewClock(), atomic.Uint64{}
		d := disktest.New(&disktest.Config{Stale: true})
		p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, small}
		p.tune.OnHeap = true
		p.tune.Between = func(where string) {
			n := calls.Add(1)
			if n%3 != 0 {
				return
			}
			for _, c := range []disktest.Chooser{disktest.Seeded(seed + n), [...]disktest.Chooser{disktest.Nothing(), disktest.Everything()}[n/3%2]} {
				rep, err := verify.Check(d.Crash(c), "data", nil)
				if err != nil || !rep.Sound() {
					t.Errorf("seed %d, history %d: power lost at %s, call %d: %v, %+v", seed, k, where, n, err, rep)
					return
				}
				losses.Add(1)
				tables.Add(int64(rep.Tables))
				if rep.Torn != nil {
					torn.Add(1)
				}
			}
		}
		e := p.open(t)
		var leases []engine.Lease
		for i := range 300 {
			if err := random(t.Context(), e, rng, &leases); err != nil {
				t.Fatalf("seed %d, history %d: %v", seed, k, err)
			}
			clock.Advance(time.Duration(rng.IntN(100)) * time.Millisecond)
			if i%25 == 24 {
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if i%100 != 99 {
				continue
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if rep, err := verify.Check(d, "data", nil); err != nil || !rep.Sound() || rep.Torn != nil {
				t.Fatalf("seed %d, history %d: closed after %d calls: %v, %+v", seed, k, i+1, err, rep)
			}
			e = p.open(t)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d losses, which left %d sstables and %d torn tails", losses.Load(), tables.Load(), torn.Load())
	if losses.Load() == 0 || tables.Load() == 0 || torn.Load() == 0 {
		t.Errorf("seed %d: too little was left", seed)
	}
}
