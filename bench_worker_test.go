package tarry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// BenchmarkWorker measures a burst: messages due in one instant, handlers that do
// nothing, acks. It reports the messages handled and acked per second.
func BenchmarkWorker(b *testing.B) {
	const burst = 100_000
	body := make([]byte, 200)
	for b.Loop() {
		b.StopTimer()
		c := tarry.New(memengine.New(nil), nil)
		for range burst / 1000 {
			msgs := make([]tarry.Draft, 1000)
			for i := range msgs {
				msgs[i] = tarry.NewDraft("q", body)
			}
			if _, err := c.PushMany(b.Context(), msgs); err != nil {
				b.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(b.Context())
		var acked atomic.Int64
		w := tarry.NewWorker(c, &tarry.WorkerConfig{Observer: func(e tarry.Event) {
			if e.Kind == tarry.Acked && acked.Add(1) == burst {
				cancel()
			}
		}})
		tarry.Handle(w, tarry.NewTopic[[]byte]("q"), func(context.Context, *tarry.Message[[]byte]) error { return nil })
		start := time.Now()
		b.StartTimer()
		if err := w.Run(ctx); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(burst/time.Since(start).Seconds(), "msgs/s")
		b.StopTimer()
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
