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
	"github.com/tarryhq/tarry/internal/calls"
)

var large = make([]byte, calls.MostShared+1)

func coalescing() *stage {
	s := newStage()
	s.caps = func(c *engine.Capabilities) { c.Coalesce = 10 }
	return s
}

// A deadline that no caller has set is not told as one.
func TestCoalescedPushThatIsNotAnswered(t *testing.T) {
	s := coalescing()
	var single atomic.Bool // the message's error, or the call's
	s.push = func(ctx context.Context, _ []engine.Message) ([]engine.PushResult, error) {
		<-ctx.Done()
		if single.Load() {
			return []engine.PushResult{{Err: ctx.Err()}}, nil
		}
		return nil, ctx.Err()
	}
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		for i, body := range [][]byte{nil, nil, large, large} {
			alone := i%2 > 0
			single.Store(alone)
			begun := time.Now()
			_, err := c.Push(t.Context(), "q", body)
			if time.Since(begun) != calls.Timeout || !errors.Is(err, tarry.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "outcome is unknown") {
				t.Errorf("%d bytes, for itself %t: got %v", len(body), alone, err)
			}
		}
	})
}

// Who leaves while his push, or cancel, waits for those before it hears that nothing was done, and nothing
// is; who leaves one that is under way does not.
func TestCoalescedCallOfACallerWhoLeftBeforeIt(t *testing.T) {
	s := coalescing()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		s.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
			time.Sleep(10 * time.Second)
			return s.Engine.Push(ctx, msgs)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		first, second := make(chan error, 1), make(chan error, 1)
		push := func(key string, answer chan<- error) {
			_, err := c.Push(ctx, "q", nil, tarry.Key(key))
			answer <- err
		}
		go push("first", first)
		synctest.Wait()
		go push("second", second)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), engine.HintUnknown) {
			t.Errorf("who was before: %v", err)
		}
		if err := <-second; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `push q key "second": context deadline exceeded (nothing was done: `) {
			t.Errorf("who waited for it: %v", err)
		}
		pass(time.Minute)
		for key, want := range map[string]error{"first": nil, "second": tarry.ErrNotFound} {
			if _, err := c.Get(t.Context(), tarry.ByKey(key).Of("q")); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", key, err, want)
			}
		}
	})
}

func TestCoalescedPushOfACallerWhoLeftIsHisNoMore(t *testing.T) {
	s := coalescing()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		s.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
			time.Sleep(10 * time.Second)
			return s.Engine.Push(ctx, msgs)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		m := tarry.NewDraft("q", []byte("body"), tarry.Header("name", "value"), tarry.Backoff(time.Minute), tarry.Key("k"), tarry.In(time.Hour))
		if _, err := c.PushDraft(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		m.Body[0], m.Headers[0].Value, m.Backoff[0] = 'X', "X", time.Hour
		pass(2 * time.Minute)
		got, err := c.Get(t.Context(), tarry.ByKey("k").Of("q"))
		if err != nil || string(got.Body) != "body" || got.Headers[0].Value != "value" || got.Backoff[0] != time.Minute {
			t.Errorf("%+v, %v", got, err)
		}
		synctest.Wait()
	})
}

// Pushes of large bodies wait neither for each other nor for small ones.
func TestLargePushesAreNotCoalesced(t *testing.T) {
	s := coalescing()
	bubbleOn(t, s, func(t *testing.T, c *tarry.Client) {
		var underWay [2]atomic.Int32 // of small bodies, and of large ones
		s.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
			underWay[len(msgs[0].Body)/len(large)].Add(int32(len(msgs)))
			time.Sleep(time.Second)
			return s.Engine.Push(ctx, msgs)
		}
		for range 3 {
			for _, body := range [][]byte{large[1:], large} {
				go func() {
					if _, err := c.Push(t.Context(), "q", body); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Wait()
		}
		if small, large := underWay[0].Load(), underWay[1].Load(); small != 1 || large != 3 {
			t.Errorf("%d small pushes and %d large ones are under way", small, large)
		}
		pass(time.Minute)
	})
}
