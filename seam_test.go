package tarry_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// inTrouble runs f in a bubble with a client of a troubled engine, and ends the
// trouble and closes the client when f is done.
func inTrouble(t *testing.T, f func(t *testing.T, e *troubled, c *tarry.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newTroubled()
		c := tarry.New(e, nil)
		f(t, e, c)
		e.recover()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := e.hung(); n != 0 {
			t.Errorf("%d calls still hang", n)
		}
	})
}

// Whatever call an engine hangs in: it is left when its context ends.
func TestEveryCallIsLeftWhenItsContextEnds(t *testing.T) {
	key := tarry.ByKey("k")
	calls := map[string]func(ctx context.Context, c *tarry.Client) error{
		"Push": func(ctx context.Context, c *tarry.Client) error { _, err := c.Push(ctx, "q", nil); return err },
		"PushMessage": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.PushDraft(ctx, tarry.NewDraft("q", nil))
			return err
		},
		"PushMany": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.PushMany(ctx, []tarry.Draft{tarry.NewDraft("q", nil)})
			return err
		},
		"PushAtomic": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.PushAtomic(ctx, []engine.Message{tarry.NewDraft("q", nil)})
			return err
		},
		"Rearm": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Rearm(ctx, "q", "k", tarry.In(0), nil)
			return err
		},
		"Lease": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
			return err
		},
		"LeaseNow": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.LeaseNow(ctx, []engine.Want{{Queue: "q", Max: 1}})
			return err
		},
		"Settle": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Settle(ctx, []tarry.Settlement{{Token: "t", Do: engine.Ack}})
			return err
		},
		"Claim": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Claim(ctx, key.Of("q"), tarry.LeaseOptions{})
			return err
		},
		"Cancel": func(ctx context.Context, c *tarry.Client) error { return c.Cancel(ctx, key.Of("q")) },
		"CancelMany": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.CancelMany(ctx, []tarry.Ref{{Queue: "q", Key: "k"}})
			return err
		},
		"Reschedule": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Reschedule(ctx, key.Of("q"), tarry.In(0))
			return err
		},
		"Get": func(ctx context.Context, c *tarry.Client) error { _, err := c.Get(ctx, key.Of("q")); return err },
		"ListPage": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.ListPage(ctx, engine.ListQuery{Queue: "q", State: tarry.Ready})
			return err
		},
		"List": func(ctx context.Context, c *tarry.Client) (err error) {
			for _, err = range c.List(ctx, "q", tarry.Ready) {
			}
			return err
		},
		"Queue":  func(ctx context.Context, c *tarry.Client) error { _, err := c.Queue(ctx, "q"); return err },
		"Queues": func(ctx context.Context, c *tarry.Client) error { _, _, err := c.Queues(ctx, "", 0); return err },
		"Forecast": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Forecast(ctx, "q", time.Minute, time.Hour)
			return err
		},
		"Pause":  func(ctx context.Context, c *tarry.Client) error { return c.Pause(ctx, "q", 0) },
		"Resume": func(ctx context.Context, c *tarry.Client) error { return c.Resume(ctx, "q") },
		"Purge": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Purge(ctx, "q", tarry.PurgeDead)
			return err
		},
		"Redrive": func(ctx context.Context, c *tarry.Client) error { _, err := c.Redrive(ctx, "q", nil, 0); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
				e.befall(hangs)
				limit := time.Minute
				if name == "Lease" {
					limit = 10 * time.Second // it is told that the engine hangs sooner than in a minute
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				err := call(ctx, c)
				if took := time.Since(start); took < limit || took > limit+2*time.Second {
					t.Errorf("left after %s; want %s", took, limit)
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if !strings.HasPrefix(name, "Lease") && !strings.Contains(err.Error(), "outcome is unknown") {
					t.Errorf("%v does not say that the outcome is unknown", err)
				}
				if e.hung() == 0 {
					t.Error("nothing hung; the test shows nothing")
				}
			})
		})
	}
}

// What a call leases after its caller left goes back, its attempt not counted.
func TestLeaseThatComesTooLateIsGivenBack(t *testing.T) {
	for name, lease := range map[string]func(ctx context.Context, c *tarry.Client) error{
		"Lease": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
			return err
		},
		"LeaseNow": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.LeaseNow(ctx, []engine.Want{{Queue: "q", Max: 1}})
			return err
		},
		"Claim": func(ctx context.Context, c *tarry.Client) error {
			_, err := c.Claim(ctx, tarry.ByKey("k").Of("q"), tarry.LeaseOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
				push(t, c, "q", "x", tarry.Key("k"))
				e.befall(hangs, "Lease", "Claim")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lease(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				e.recover()
				synctest.Wait()
				if info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q")); err != nil || info.State != tarry.Ready || info.Attempt != 0 {
					t.Errorf("the message is %s at attempt %d, %v; want it given back", info.State, info.Attempt, err)
				}
			})
		})
	}
}

// A caller who left may change what was his.
func TestCallerWhoLeftMayChangeWhatWasHis(t *testing.T) {
	inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
		e.befall(hangs, "Push")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		body, priority := []byte("before"), uint32(1)
		draft := tarry.NewDraft("q", body, tarry.Key("k"))
		draft.Priority = &priority
		if _, err := c.PushMany(ctx, []tarry.Draft{draft}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		copy(body, "after!")
		priority = 2
		e.recover()
		synctest.Wait()
		if info, err := c.Get(t.Context(), tarry.ByKey("k").Of("q")); err != nil || string(info.Body) != "before" || info.Priority != 1 {
			t.Errorf("kept %q of priority %d, %v", info.Body, info.Priority, err)
		}
	})
}

// Calls that were left do not pile up without end.
func TestCallsOfAnEngineThatHangsAreBounded(t *testing.T) {
	inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
		e.befall(hangs, "Get")
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, err := c.Get(ctx, tarry.ByKey("k").Of("q"))
			return err
		}
		for range 1000 {
			if err := get(); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if err := get(); !errors.Is(err, tarry.ErrUnavailable) || e.hung() != 1000 {
			t.Errorf("the 1001st: %v; %d calls hang", err, e.hung())
		}
		e.recover()
		synctest.Wait()
		if err := get(); !errors.Is(err, tarry.ErrNotFound) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// An engine that hangs holds up neither Run, once drained, nor Close.
func TestWorkerEndsOnAnEngineThatHangs(t *testing.T) {
	for _, name := range []string{"Lease", "LeaseWait", "Settle", "Extend", ""} {
		t.Run("in "+name, func(t *testing.T) {
			inTrouble(t, func(t *testing.T, e *troubled, c *tarry.Client) {
				if name == "LeaseWait" {
					e.caps = func(caps *engine.Capabilities) { caps.LeaseWait = true }
					c = tarry.New(e, nil)
				}
				w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Second, DrainTimeout: time.Minute})
				var begun atomic.Int32
				tarry.Handle(w, bytesTopic, func(ctx context.Context, m *tarry.Message[string]) error {
					begun.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(20 * time.Second):
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				push(t, c, "q", "x")
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				synctest.Wait()
				e.befall(hangs, name)
				pass(time.Second)
				push := func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, _ = c.Push(ctx, "q", nil) // has the dispatcher ask
				}
				push()
				pass(19 * time.Second)
				start := time.Now()
				cancel()
				<-done
				if took := time.Since(start); took > time.Minute+15*time.Second {
					t.Errorf("drained in %s", took)
				}
				if begun.Load() == 0 || e.hung() == 0 {
					t.Errorf("%d handlers began, %d calls hang; the test shows nothing", begun.Load(), e.hung())
				}
				start = time.Now()
				_ = c.Close()
				if took := time.Since(start); took > time.Minute {
					t.Errorf("closed in %s", took)
				}
			})
		})
	}
}

// Close does not wait for ever, says so, and lets go of what it began once the
// engine answers.
func TestCloseOnAnEngineThatHangs(t *testing.T) {
	for _, name := range []string{"Push", "Lease", "Close"} {
		t.Run("in "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newTroubled()
				e.caps = func(caps *engine.Capabilities) { caps.Coalesce = 100 }
				toOpen.Store(e)
				c, err := tarry.Open(t.Context(), "troubled:", nil)
				if err != nil {
					t.Fatal(err)
				}
				e.befall(hangs, name, "Close")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _ = c.Push(ctx, "q", nil)
				_, _ = c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
				start := time.Now()
				err = c.Close()
				if took := time.Since(start); took > time.Minute || !errors.Is(err, tarry.ErrUnavailable) {
					t.Errorf("closed in %s: %v", took, err)
				}
				if again := c.Close(); again != err {
					t.Errorf("second Close: %v", again)
				}
				e.recover()
				synctest.Wait()
				if _, err := e.Engine.Get(t.Context(), engine.Ref{Queue: "q", Key: "k"}); !errors.Is(err, tarry.ErrClosed) {
					t.Errorf("the engine was left open: %v", err)
				}
			})
		})
	}
}

func TestOpenIsLeftWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTroubled()
		toOpen.Store(e)
		e.befall(hangs, "Open")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := tarry.Open(ctx, "troubled:", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("open: %v", err)
		}
		e.recover()
		synctest.Wait()
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: 1}); !errors.Is(err, tarry.ErrClosed) {
			t.Errorf("an engine that nobody got was left open: %v", err)
		}
	})
}
