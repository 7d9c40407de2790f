package tarry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// BenchmarkIdleQueues measures what a message costs, from its push to its handler,
// in a worker that waits on other queues as well, where nothing happens.
func BenchmarkIdleQueues(b *testing.B) {
	for _, idle := range []int{0, 10_000} {
		b.Run(fmt.Sprint(idle), func(b *testing.B) {
			c := tarry.New(memengine.New(nil), nil)
			defer c.Close()
			handled := make(chan struct{}, 1)
			w := tarry.NewWorker(c, nil)
			for i := range idle + 1 {
				tarry.Handle(w, tarry.NewTopic[[]byte](fmt.Sprint("q", i)), func(context.Context, *tarry.Message[[]byte]) error {
					handled <- struct{}{}
					return nil
				})
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			ran := make(chan error, 1)
			go func() { ran <- w.Run(ctx) }()
			push := func() {
				if _, err := c.Push(ctx, "q0", nil); err != nil {
					b.Fatal(err)
				}
				<-handled
			}
			push() // all queues have been asked
			for b.Loop() {
				push()
			}
			cancel()
			if err := <-ran; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkWaiters measures what a message costs, from its push to the one who gets
// it, when many wait for messages of its queue.
func BenchmarkWaiters(b *testing.B) {
	for _, waiters := range []int{1, 5000} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			eng := &counted{Engine: memengine.New(nil)}
			c := tarry.New(eng, nil)
			defer c.Close()
			got := make(chan error, waiters)
			wait := func() {
				l, err := c.Lease(b.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: time.Hour})
				if err == nil && len(l.Messages) != 1 {
					err = fmt.Errorf("%d messages", len(l.Messages))
				}
				got <- err
			}
			for range waiters {
				go wait()
			}
			push := func() {
				if _, err := c.Push(b.Context(), "q", nil); err != nil {
					b.Fatal(err)
				}
				if err := <-got; err != nil {
					b.Fatal(err)
				}
			}
			for range 10 {
				push()
				go wait()
			}
			before, asked := cpu(), eng.asked.Load()
			for b.Loop() {
				push()
				go wait()
			}
			b.ReportMetric(float64(cpu()-before)/1e3/float64(b.N), "cpu-µs/msg")
			b.ReportMetric(float64(eng.asked.Load()-asked)/float64(b.N), "calls/msg")
			for range waiters {
				push()
			}
		})
	}
}

// counted is an engine that counts the calls of Lease.
type counted struct {
	*memengine.Engine
	asked atomic.Int64
}

func (e *counted) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	e.asked.Add(1)
	return e.Engine.Lease(ctx, wants)
}
