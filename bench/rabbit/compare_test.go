package rabbit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

const (
	rate  = 500    // messages pushed each second in Lateness
	burst = 10_000 // messages of Burst
)

// BenchmarkPush pushes b.N messages with the same delay in single calls of 64 clients.
func BenchmarkPush(b *testing.B) {
	compare(b, func(b *testing.B, _ impl, s system) {
		for _, delay := range []string{"1s", "1m", "48h"} {
			b.Run("delay="+delay, func(b *testing.B) {
				d, err := time.ParseDuration(delay)
				scenario.Must(b, err)
				cpu := scenario.CPU()
				b.ResetTimer()
				scenario.Each(b, scenario.Clients, b.N, 1, func(ctx context.Context, i, _ int) error { return s.push(ctx, i, d) })
				b.StopTimer()
				scenario.Report(b, float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
				scenario.Report(b, float64((scenario.CPU()-cpu).Microseconds())/float64(b.N), "cpu-us/msg")
			})
		}
	})
}

// burstDelay has five binary digits that are 1 in units of 10 ms and of 100 ms.
const burstDelay = 3100 * time.Millisecond

// BenchmarkBurst pushes as fast as it can, and measures from the first push to the last
// arrival, but for the delay.
func BenchmarkBurst(b *testing.B) {
	scenario.Once(b)
	compare(b, func(b *testing.B, i impl, s system) {
		a := newArrivals(burst, burstDelay)
		stop := s.work(b, a.arrived)
		defer stop()
		cpu, began := scenario.CPU(), time.Now()
		scenario.Each(b, scenario.Clients, burst, 1, func(ctx context.Context, i, _ int) error { return a.push(ctx, s, i) })
		a.await(b)
		took := time.Unix(0, a.last.Load()).Sub(began) - burstDelay
		perSecond := burst / took.Seconds()
		_, early := a.of(burstDelay)
		scenario.Report(b, perSecond, "msgs/s")
		scenario.Report(b, perSecond*float64(i.hops(burstDelay)), "hops/s")
		scenario.Report(b, float64((scenario.CPU()-cpu).Microseconds())/burst, "cpu-us/msg")
		scenario.Report(b, float64(early), "early")
	})
}

// BenchmarkLateness pushes at a steady rate, with delays of 1 s, 3 s and 10 s in turn, and
// measures from the beginning of each push to the start of its handler, but for the delay.
func BenchmarkLateness(b *testing.B) {
	scenario.Once(b)
	compare(b, func(b *testing.B, _ impl, s system) {
		a := newArrivals(int(rate*scenario.Span.Seconds()), time.Second, 3*time.Second, 10*time.Second)
		stop := s.work(b, a.arrived)
		defer stop()
		var pushes sync.WaitGroup
		began, failed := time.Now(), make(chan error, len(a.late))
		for i := range a.late {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / rate)))
			pushes.Go(func() {
				if err := a.push(b.Context(), s, i); err != nil {
					failed <- err
				}
			})
		}
		pushes.Wait()
		close(failed)
		scenario.Must(b, <-failed)
		a.await(b)
		for _, delay := range a.delays {
			b.Run(fmt.Sprintf("delay=%s", delay), func(b *testing.B) {
				late, early := a.of(delay)
				for unit, q := range map[string]float64{"p50-ms": 0.50, "p99-ms": 0.99, "max-ms": 1} {
					scenario.Report(b, float64(late[int(q*float64(len(late)-1))])/1e6, unit)
				}
				scenario.Report(b, float64(early), "early")
			})
		}
	})
}
