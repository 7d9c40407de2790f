package tarry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tarryhq/tarry"
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
