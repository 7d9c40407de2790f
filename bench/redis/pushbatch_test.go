package redis

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkPushBatch is BenchmarkPush with 100 messages a call where there are such
// calls, and with fewer clients as well.
func BenchmarkPushBatch(b *testing.B) {
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		for _, n := range []int{8, clients} {
			b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
				s := open(b)
				now := time.Now()
				b.ResetTimer()
				each(b, n, b.N, 100, func(ctx context.Context, from, to int) error {
					return s.pushMany(ctx, queue, from, to, func(i int) time.Time { return now.Add(far(i)) })
				})
				reportRate(b)
			})
		}
	})
}
