package sqltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// How many goroutines of churn push, and as many lease and ack, and how many messages at a time.
const (
	churners  = 4
	churnPush = 100
	churnPull = 200
)

// churn pushes n messages to a queue, due at once, and leases and acks them at the same time. It
// returns the rate per second. Only one may run on a queue at a time.
func churn(t testing.TB, e engine.Engine, queue string, n int) float64 {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	began := time.Now()
	var tasks sync.WaitGroup
	var pushed, acked atomic.Int64
	for range churners {
		tasks.Go(func() {
			for ctx.Err() == nil {
				from := int(pushed.Add(churnPush)) - churnPush
				if from >= n {
					return
				}
				if err := churnIn(ctx, e, queue, fmt.Sprint(began.UnixNano()), from, min(n, from+churnPush)); err != nil {
					cancel(err)
				}
			}
		})
		tasks.Go(func() {
			for ctx.Err() == nil && acked.Load() < int64(n) {
				done, err := churnOut(ctx, e, queue)
				if err != nil {
					cancel(err)
				}
				if acked.Add(int64(done)); done == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	tasks.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatalf("after %d messages: %v", acked.Load(), err)
	}
	return float64(n) / time.Since(began).Seconds()
}

func churnIn(ctx context.Context, e engine.Engine, queue, prefix string, from, to int) error {
	msgs := make([]engine.Message, 0, churnPush)
	for i := from; i < to; i++ {
		msgs = append(msgs, engine.Message{Queue: queue, Key: fmt.Sprintf("%s-%d", prefix, i), Content: engine.Content{Body: make([]byte, 200)}})
	}
	results, err := e.Push(ctx, msgs)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

func churnOut(ctx context.Context, e engine.Engine, queue string) (int, error) {
	g, err := e.Lease(ctx, []engine.Want{{Queue: queue, Max: churnPull, TTR: time.Minute}})
	if err != nil || len(g.Queues[0].Messages) == 0 {
		return 0, err
	}
	var acks []engine.Settlement
	for _, l := range g.Queues[0].Messages {
		acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
	}
	settled, err := e.Settle(ctx, acks)
	for _, s := range settled {
		if err == nil {
			err = s.Err
		}
	}
	return len(acks), err
}
