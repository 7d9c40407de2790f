package tarry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// A program that ends as most do, with a deferred Close beside its worker, loses no
// result: the handler that runs returns, may use the client, and its ack is told.
func TestCloseWaitsForWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := memengine.New(nil)
		c := tarry.New(eng, nil)
		w := tarry.NewWorker(c, nil)
		var followed list[error]
		tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
			time.Sleep(20 * time.Second)
			_, err := c.Push(ctx, "next", nil, tarry.Key(m.Key))
			followed.add(err)
			return err
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		push(t, c, "q", "x", tarry.Key("k"))
		pass(time.Second)

		start := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 19*time.Second {
			t.Errorf("closed after %s, want as soon as the handler returned, 19 s", took)
		}
		if err := <-done; !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("Run: %v, want ErrClosed", err)
		}
		if got := followed.all(); len(got) != 1 || got[0] != nil {
			t.Errorf("the handler's push while the client closes: %v", got)
		}
		after := tarry.New(eng, nil)
		defer after.Close()
		if _, err := after.Get(t.Context(), tarry.ByKey("k").Of("q")); !errors.Is(err, tarry.ErrNotFound) {
			t.Errorf("the message that was handled: %v, want ErrNotFound", err)
		}
		if info, err := after.Get(t.Context(), tarry.ByKey("k").Of("next")); err != nil || info.State != tarry.Ready {
			t.Errorf("what its handler pushed: %+v, %v", info, err)
		}
	})
}

// What a call leases that its caller has left is given back before Close returns, which
// waits for that for 5 s at most.
func TestCloseWaitsForLeasesToBeGivenBack(t *testing.T) {
	for _, c := range []struct {
		hangs, closes time.Duration
	}{{3 * time.Second, 3 * time.Second}, {time.Hour, 5 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			e := newTroubled()
			client := tarry.New(e, nil)
			push(t, client, "q", "x", tarry.Key("k"))
			e.befall(hangs, "Lease")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := client.LeaseNow(ctx, []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			time.AfterFunc(c.hangs, e.recover)
			start := time.Now()
			if err := client.Close(); err != nil || time.Since(start) != c.closes {
				t.Errorf("closed after %s, want %s: %v", time.Since(start), c.closes, err)
			}
			info, err := e.Engine.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"})
			if c.closes == c.hangs && (err != nil || info.State != tarry.Ready || info.Attempt != 0) {
				t.Errorf("the message is %s at attempt %d, %v; want it given back", info.State, info.Attempt, err)
			}
			pass(c.hangs)
		})
	}
}

// Close waits for the handlers of claims, and for what becomes of their messages.
func TestCloseWaitsForClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		heeds bool          // the handler returns when its context ends
		runs  time.Duration // else it runs for so long
		took  time.Duration // of Close
		state tarry.State   // afterwards
	}{
		"finishes": {runs: 10 * time.Second, took: 10 * time.Second, state: tarry.Gone},
		"too long": {heeds: true, took: tarry.DefaultDrainTimeout, state: tarry.Ready},
		"never":    {runs: time.Hour, took: tarry.DefaultDrainTimeout + 5*time.Second, state: tarry.Leased},
	} {
		t.Run(name, func(t *testing.T) {
			eng := memengine.New(nil)
			synctest.Test(t, func(t *testing.T) {
				c := tarry.New(eng, nil)
				p := push(t, c, "q", "x", tarry.Key("k"))
				done := make(chan error, 1)
				go func() {
					done <- bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), func(ctx context.Context, _ *tarry.Message[string]) error {
						if tc.heeds {
							<-ctx.Done()
							return ctx.Err()
						}
						time.Sleep(tc.runs)
						return nil
					})
				}()
				synctest.Wait()
				start := time.Now()
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("closed after %s, want %s", took, tc.took)
				}
				info, err := eng.Get(t.Context(), engine.Ref{Queue: "q", ID: p.ID})
				if tc.state == tarry.Gone && !errors.Is(err, tarry.ErrNotFound) || tc.state != tarry.Gone && info.State != tc.state {
					t.Errorf("the message is %s, %v; want %s", info.State, err, tc.state)
				}
				if tc.heeds && info.Attempt != 0 {
					t.Errorf("attempt %d was counted", info.Attempt)
				}
				if err := <-done; tc.state == tarry.Gone && err != nil {
					t.Errorf("Claim: %v", err)
				}
				if err := bytesTopic.Claim(t.Context(), c, tarry.ByKey("k"), doNothing); !errors.Is(err, tarry.ErrClosed) {
					t.Errorf("a claim afterwards: %v", err)
				}
			})
		})
	}
}

func doNothing(context.Context, *tarry.Message[string]) error { return nil }
