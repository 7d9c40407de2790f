package redis

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkCancelDepth times single cancels of one client among few and among many
// pending messages. What is cancelled is pushed anew, so that as many stay.
func BenchmarkCancelDepth(b *testing.B) {
	const samples = 1000
	once(b)
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		for _, pending := range []int{1000, *maxPending} {
			b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
				s := open(b)
				fill(b, s, queue, pending)
				at, took := leaps(pending), make([]time.Duration, samples)
				later := time.Now().Add(24 * time.Hour)
				each(b, 1, samples, 1, func(ctx context.Context, n, _ int) error {
					i := at(n % pending)
					began := time.Now()
					if err := s.cancel(ctx, queue, i); err != nil {
						return err
					}
					took[n] = time.Since(began)
					return s.push(ctx, queue, i, later.Add(far(i)))
				})
				report(b, float64(quantile(took, 0.50))/1e3, "p50-us")
			})
		}
	})
}
