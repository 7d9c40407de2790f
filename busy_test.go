package tarry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// held answers with ErrBusy, until a minute after the first time, what is gathered and
// concerns the key or body "held".
func held() *stage {
	s := coalescing()
	var first sync.Once
	var until time.Time
	busy := func(ctx context.Context, what string) bool {
		first.Do(func() { until = time.Now().Add(time.Minute) })
		return what == "held" && engine.IsGathered(ctx) && time.Now().Before(until)
	}
	s.push = func(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
		time.Sleep(time.Millisecond)
		out, err := make([]engine.PushResult, len(msgs)), error(nil)
		for i := range msgs {
			if out[i].Err = engine.ErrBusy; !busy(ctx, msgs[i].Key) {
				var one []engine.PushResult
				if one, err = s.Engine.Push(ctx, msgs[i:i+1]); err == nil {
					out[i] = one[0]
				}
			}
		}
		return out, err
	}
	var tokens sync.Map
	s.lease = func(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		for _, q := range g.Queues {
			for _, l := range q.Messages {
				tokens.Store(l.Token, string(l.Body))
			}
		}
		return g, err
	}
	s.settle = func(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
		out, err := s.Engine.Settle(ctx, in[:0])
		for i := range in {
			body, _ := tokens.Load(in[i].Token)
			if what, _ := body.(string); busy(ctx, what) {
				out = append(out, engine.Settled{Err: engine.ErrBusy})
				continue
			}
			one, err := s.Engine.Settle(ctx, in[i:i+1])
			if err != nil {
				return nil, err
			}
			out = append(out, one...)
		}
		return out, err
	}
	return s
}

// Who pushes what another transaction holds waits for that, and nobody else does.
func TestPushWaitsForOthersAlone(t *testing.T) {
	bubbleOn(t, held(), func(t *testing.T, c *tarry.Client) {
		start := time.Now()
		done := make(chan error, 2)
		go func() {
			_, err := c.Push(t.Context(), "q", nil, tarry.Key("held"), tarry.In(time.Hour))
			done <- err
		}()
		for range 100 {
			push(t, c, "q", "x", tarry.In(time.Hour))
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the others took %v", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < time.Minute || took > time.Minute+200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestPushGivesUpWaitingForOthers(t *testing.T) {
	bubbleOn(t, held(), func(t *testing.T, c *tarry.Client) {
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := c.Push(ctx, "q", nil, tarry.Key("held")); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, tarry.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// A result that the engine does not take yet holds up no other.
func TestSettlementsPassOneThatIsHeld(t *testing.T) {
	bubbleOn(t, held(), func(t *testing.T, c *tarry.Client) {
		w := tarry.NewWorker(c, &tarry.WorkerConfig{LeaseTTR: 10 * time.Minute})
		tarry.Handle(w, tarry.NewTopic[string]("q"), func(context.Context, *tarry.Message[string]) error { return nil }, tarry.Concurrency(1))
		push(t, c, "q", "held")
		push(t, c, "q", "held")
		push(t, c, "q", "held")
		for i := range 10 {
			push(t, c, "q", "x", tarry.In(time.Duration(i)*time.Second))
		}
		stop := run(t, w)
		left := func(want int64) {
			t.Helper()
			if info, err := c.Queue(t.Context(), "q"); err != nil || info.Leased != want || info.Ready+info.Scheduled > 0 {
				t.Errorf("%+v, %v; want %d leased", info, err, want)
			}
		}
		pass(20 * time.Second)
		left(3)
		pass(time.Minute)
		left(0)
		stop()
	})
}
