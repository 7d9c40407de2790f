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
		for _, alone := range []bool{false, true} {
			single.Store(alone)
			_, err := c.Push(t.Context(), "q", nil)
			if !errors.Is(err, tarry.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "outcome is unknown") {
				t.Errorf("for itself %t: got %v", alone, err)
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
