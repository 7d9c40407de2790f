package tarry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// While an engine fails, loses answers and hangs in whatever call, nothing is lost,
// and nothing is started twice but by attempts that the engine knows of.
func TestWorkerOnAnEngineInTrouble(t *testing.T) {
	for name, wait := range map[string]bool{"asked": false, "waiting": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTroubled()
				e.caps = func(caps *engine.Capabilities) { caps.LeaseWait = wait }
				c := tarry.New(e, nil)
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				random := rand.New(rand.NewPCG(seed, 0))
				var rec record
				w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: 5, LeaseTTR: 10 * time.Second, Observer: rec.observe})
				type start struct {
					id      tarry.ID
					attempt uint32
				}
				var mu sync.Mutex
				started := make(map[start]int)
				handled := make(map[tarry.ID]bool)
				tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
					mu.Lock()
					started[start{m.ID, m.Attempt}]++
					mu.Unlock()
					select {
					case <-time.After(15 * time.Second):
					case <-ctx.Done():
						return ctx.Err()
					}
					mu.Lock()
					handled[m.ID] = true
					mu.Unlock()
					return nil
				})
				var all []tarry.Pushed
				for range 50 {
					all = append(all, push(t, c, "q", "x", tarry.MaxAttempts(1000), tarry.Backoff(time.Second)))
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				calls := []string{"Lease", "LeaseWait", "Settle", "Extend"}
				for range 60 {
					e.befall(trouble(1+random.IntN(3)), calls[random.IntN(len(calls))])
					pass(time.Duration(random.Int64N(int64(20 * time.Second))))
					e.recover()
					pass(time.Duration(random.Int64N(int64(5 * time.Second))))
				}
				pass(10 * time.Minute)
				cancel()
				if err := <-done; err != nil && !errors.Is(err, tarry.ErrUnavailable) { // it says so of results it could not tell
					t.Errorf("Run: %v", err)
				}
				for _, p := range all {
					gone(t, c, p)
					if !handled[p.ID] {
						t.Errorf("message %s is gone, but was not handled", p.ID)
					}
				}
				for s, n := range started {
					if n > 1 {
						t.Errorf("attempt %d of message %s was started %d times", s.attempt, s.id, n)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A renewal is under way while its handler returns: the ack decides, and that the
// renewal then finds no lease means nothing.
func TestWorkerAcksWhileItRenews(t *testing.T) {
	s := newStage()
	var lost atomic.Int32
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		if in[0].Do != engine.Extend {
			return s.Engine.Settle(ctx, in)
		}
		time.Sleep(2 * time.Second)
		out, err := s.Engine.Settle(ctx, in)
		if err == nil && errors.Is(out[0].Err, tarry.ErrLeaseLost) {
			lost.Add(1)
		}
		return out, err
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var rec record
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, Observer: rec.observe})
		tarry.Handle(w, bytesTopic, func(ctx context.Context, _ *tarry.Message[string]) error {
			time.Sleep(6 * time.Second)
			return ctx.Err()
		})
		stop := run(t, w)
		p := push(t, c, "q", "x")
		pass(time.Minute)
		gone(t, c, p)
		rec.one(t, tarry.Acked)
		if n := len(rec.of(tarry.LeaseLost)); n != 0 || lost.Load() != 1 {
			t.Errorf("%d events of a lost lease; %d renewals came after the ack, want 0 and 1", n, lost.Load())
		}
		stop()
	})
}
