package memengine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestOpen(t *testing.T) {
	e, err := engine.Open(t.Context(), "mem:?max_pending=3")
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Capabilities().MaxPending; got != 3 {
		t.Errorf("at most %d messages, not 3", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"mem:x", "mem://host", "mem:///path", "mem:?a=b"} {
		if _, err := engine.Open(t.Context(), bad); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", bad, err)
		}
	}
}

// The engine has no goroutine and no timer: fake time passes without its help.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(nil)
		defer e.Close()
		push(t, e, msg("q", "a", 48*time.Hour))
		g := lease(t, e, "q", 1)
		time.Sleep(time.Until(g.NextDue) - time.Millisecond)
		if g := lease(t, e, "q", 1); len(g.Messages) != 0 {
			t.Fatal("leased early")
		}
		time.Sleep(time.Millisecond)
		if g := lease(t, e, "q", 1); len(g.Messages) != 1 {
			t.Fatal("not leased when due")
		}
	})
}

// Queues that became empty are forgotten, without harm to those in use.
func TestManyQueues(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("stays", "a", time.Hour))
	if err := e.Pause(t.Context(), "paused", 0); err != nil {
		t.Fatal(err)
	}
	for i := range 10 * tidyLeast {
		name := fmt.Sprint("q", i)
		push(t, e, msg(name, "a", 0))
		g := lease(t, e, name, 1)
		settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Ack})
	}
	if n := len(e.queues); n > tidyLeast || n != len(e.numbered)-len(e.free) {
		t.Errorf("%d queues are kept by name, %d by number; want at most %d", n, len(e.numbered)-len(e.free), tidyLeast)
	}
	infos, next, err := e.Queues(t.Context(), "", 9)
	if err != nil || next != "" || len(infos) != 2 || infos[0].Queue != "paused" || infos[1].Queue != "stays" {
		t.Errorf("%+v, %q, %v", infos, next, err)
	}
}

// A token of a queue that was forgotten is nobody's, also where another stands in its place.
func TestTokenOfForgottenQueue(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("gone", "a", 0))
	token := lease(t, e, "gone", 1).Messages[0].Token
	settle(t, e, engine.Settlement{Token: token, Do: engine.Ack})
	for i := range 2 * tidyLeast {
		push(t, e, msg(fmt.Sprint("q", i), "a", time.Hour))
	}
	if e.queues["gone"] != nil || len(e.free) > 0 {
		t.Fatalf("%d places are free", len(e.free))
	}
	out, err := e.Settle(t.Context(), []engine.Settlement{{Token: token, Do: engine.Ack}})
	if err != nil {
		t.Fatal(err)
	}
	if refused, ok := errors.AsType[*engine.Error](out[0].Err); !ok || refused.Err != engine.ErrLeaseLost || refused.Queue != "" {
		t.Errorf("%v", out[0].Err)
	}
}

// Queues are forgotten under the hands of those who use them.
func TestForgetWhileInUse(t *testing.T) {
	e := New(nil)
	var wg sync.WaitGroup
	var acked atomic.Int64
	const workers, rounds = 4, 2000
	for range workers {
		wg.Go(func() {
			for i := range rounds {
				name := fmt.Sprint("q", i%7)
				e.mu.Lock()
				e.tidy()
				e.mu.Unlock()
				if r, err := e.Push(t.Context(), []engine.Message{msg(name, "", 0)}); err != nil || r[0].Err != nil {
					t.Error(err, r)
				}
				g, err := e.Lease(t.Context(), []engine.Want{{Queue: name, Max: 2}})
				if err != nil {
					t.Error(err)
					return
				}
				for _, m := range g.Queues[0].Messages {
					if s, err := e.Settle(t.Context(), []engine.Settlement{{Token: m.Token, Do: engine.Ack}}); err != nil || s[0].Err != nil {
						t.Error(err, s)
					}
					acked.Add(1)
				}
			}
		})
	}
	wg.Wait()
	left := int64(0)
	for i := range 7 {
		left += int64(len(lease(t, e, fmt.Sprint("q", i), workers*rounds).Messages))
	}
	if acked.Load()+left != workers*rounds {
		t.Errorf("%d acked and %d left, of %d", acked.Load(), left, workers*rounds)
	}
}

func TestPushAtomicAcrossQueues(t *testing.T) {
	e, _ := newEngine(t)
	e.maxPending = 3
	push(t, e, msg("b", "taken", time.Hour))
	results, err := e.PushAtomic(t.Context(), []engine.Message{msg("a", "1", 0), msg("b", "taken", 0), msg("c", "", 0)})
	if !errors.Is(err, engine.ErrExists) || !errors.Is(results[1].Err, engine.ErrExists) || results[0].Err != nil {
		t.Fatalf("%+v, %v", results, err)
	}
	twice := []engine.Message{msg("a", "1", 0), msg("a", "1", 0)}
	if _, err := e.PushAtomic(t.Context(), twice); !errors.Is(err, engine.ErrExists) {
		t.Fatalf("the same key twice: %v, want ErrExists", err)
	}
	full := []engine.Message{msg("a", "", 0), msg("b", "", 0), msg("c", "", 0)}
	if _, err := e.PushAtomic(t.Context(), full); !errors.Is(err, engine.ErrLimit) {
		t.Fatalf("one too many: %v, want ErrLimit", err)
	}
	if n := e.pending.Load(); n != 1 {
		t.Fatalf("%d pending after pushes that failed, want 1", n)
	}
	twice[1].OnConflict = engine.Rearm
	if _, err := e.PushAtomic(t.Context(), append(twice, msg("c", "", 0))); err != nil {
		t.Fatal(err)
	}
	if n := e.pending.Load(); n != 3 {
		t.Fatalf("%d pending, want 3", n)
	}
}

// Two calls that name the same queues in opposite order do not wait for each
// other for ever.
func TestPushAtomicConcurrently(t *testing.T) {
	e := New(nil)
	var wg sync.WaitGroup
	for w := range 4 {
		names := []string{"a", "b", "c"}
		if w%2 == 1 {
			names = []string{"c", "b", "a"}
		}
		wg.Go(func() {
			for range 500 {
				if _, err := e.PushAtomic(t.Context(), []engine.Message{msg(names[0], "", 0), msg(names[1], "", 0), msg(names[2], "", 0)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := e.pending.Load(); n != 6000 {
		t.Errorf("%d pending, want 6000", n)
	}
}

// The limit holds when pushes to several queues race for the last place.
func TestMaxPending(t *testing.T) {
	e := New(&Config{MaxPending: 100})
	var wg sync.WaitGroup
	var kept atomic.Int64
	for w := range 4 {
		wg.Go(func() {
			for range 100 {
				r, err := e.Push(t.Context(), []engine.Message{msg(fmt.Sprint("q", w), "", 0)})
				switch {
				case err != nil:
					t.Error(err)
				case r[0].Err == nil:
					kept.Add(1)
				case !errors.Is(r[0].Err, engine.ErrLimit):
					t.Error(r[0].Err)
				}
			}
		})
	}
	wg.Wait()
	if kept.Load() != 100 {
		t.Errorf("kept %d, want 100", kept.Load())
	}
}
