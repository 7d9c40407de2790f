package redis

import (
	"context"
	"testing"
	"time"
)

// BenchmarkPush schedules b.N messages over the next 48 hours in single calls of
// concurrent clients.
func BenchmarkPush(b *testing.B) {
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		s := open(b)
		now := time.Now()
		b.ResetTimer()
		each(b, clients, b.N, 1, func(ctx context.Context, i, _ int) error {
			return s.push(ctx, queue, i, now.Add(far(i)))
		})
		reportRate(b)
	})
}

// reportRate reports b.N messages in the time that b has run.
func reportRate(b *testing.B) {
	b.StopTimer()
	report(b, float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}
