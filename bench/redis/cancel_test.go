package redis

import (
	"context"
	"testing"
)

// BenchmarkCancel cancels b.N scheduled messages by their keys, in no order, in
// single calls of concurrent clients.
func BenchmarkCancel(b *testing.B) {
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		s := open(b)
		fill(b, s, queue, b.N)
		at := leaps(b.N)
		b.ResetTimer()
		each(b, clients, b.N, 1, func(ctx context.Context, i, _ int) error {
			return s.cancel(ctx, queue, at(i))
		})
		reportRate(b)
	})
}

// leaps returns an order of 0 to n-1 that jumps about.
func leaps(n int) (at func(i int) int) {
	gcd := func(a, b int) int {
		for b != 0 {
			a, b = b, a%b
		}
		return a
	}
	step := n*5/8 + 1
	for gcd(step, n) != 1 {
		step++
	}
	return func(i int) int { return i * step % n }
}
