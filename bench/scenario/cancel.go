package scenario

import (
	"context"
	"testing"
	"time"
)

// Cancel cancels b.N scheduled messages by key in mixed order, in single calls of concurrent
// clients.
func Cancel(b *testing.B, open Open) {
	s := open(b)
	Fill(b, s, Queue, b.N)
	at, cpu := Leaps(b.N), CPU()
	b.ResetTimer()
	Each(b, Clients, b.N, 1, func(ctx context.Context, i, _ int) error {
		return s.Cancel(ctx, Queue, at(i))
	})
	reportRate(b, cpu)
}

// CancelAmong reports how long single cancels of one client take among pending messages, which
// Fill has scheduled. Each cancelled message is pushed again, so that as many stay.
func CancelAmong(b *testing.B, s System, pending int) {
	const samples = 1000
	at, took := Leaps(pending), make([]time.Duration, samples)
	later := time.Now().Add(24 * time.Hour)
	Each(b, 1, samples, 1, func(ctx context.Context, n, _ int) error {
		i := at(n % pending)
		began := time.Now()
		if err := s.Cancel(ctx, Queue, i); err != nil {
			return err
		}
		took[n] = time.Since(began)
		return s.Push(ctx, Queue, i, later.Add(far(i)))
	})
	Report(b, float64(quantile(took, 0.50))/1e3, "p50-us")
}

// CancelManyAmong reports the time of 5,000 cancels divided by their number, in single calls
// of concurrent clients. Fill has scheduled the pending messages. At most half of them are
// cancelled at a time; then they are pushed again, which is not measured.
func CancelManyAmong(b *testing.B, s System, pending int) {
	const samples = 5000
	n := min(samples, pending/2)
	at := Leaps(pending)
	soonest := time.Now().Add(24 * time.Hour)
	var took, cpu time.Duration
	rounds := samples / n
	for round := range rounds {
		began, before := time.Now(), CPU()
		Each(b, Clients, n, 1, func(ctx context.Context, i, _ int) error {
			return s.Cancel(ctx, Queue, at(i))
		})
		took += time.Since(began)
		cpu += CPU() - before
		if round == rounds-1 {
			break
		}
		Each(b, 8, n, 1, func(ctx context.Context, i, _ int) error {
			return s.Push(ctx, Queue, at(i), soonest.Add(far(i)))
		})
	}
	Report(b, float64(took.Microseconds())/float64(rounds*n), "us/cancel")
	Report(b, float64(cpu.Microseconds())/float64(rounds*n), "cpu-us/cancel")
}

// Leaps returns a permutation of 0 to n-1 that jumps about.
func Leaps(n int) (at func(i int) int) {
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
