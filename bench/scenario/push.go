package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Push schedules b.N messages over the next 48 hours in single calls of concurrent
// clients.
func Push(b *testing.B, open Open) { PushBy(b, open, Clients, 1) }

// PushBatch is Push with 100 messages a call where there are such calls, and with fewer
// clients as well.
func PushBatch(b *testing.B, open Open) {
	for _, n := range []int{8, Clients} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) { PushBy(b, open, n, 100) })
	}
}

// PushBy is Push by so many clients, with batch messages a call where there are such calls.
func PushBy(b *testing.B, open Open, clients, batch int) {
	s := open(b)
	now, cpu := time.Now(), CPU()
	b.ResetTimer()
	Each(b, clients, b.N, batch, func(ctx context.Context, from, to int) error {
		if batch == 1 {
			return s.Push(ctx, Queue, from, now.Add(far(from)))
		}
		return s.PushMany(ctx, Queue, from, to, func(i int) time.Time { return now.Add(far(i)) })
	})
	reportRate(b, cpu)
}

// reportRate reports b.N messages in the time that b has run, and the processors' time
// since a reading of it.
func reportRate(b *testing.B, cpu time.Duration) {
	b.StopTimer()
	Report(b, float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	Report(b, float64((CPU()-cpu).Microseconds())/float64(b.N), "cpu-us/msg")
}
