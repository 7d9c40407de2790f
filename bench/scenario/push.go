package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Push schedules b.N messages over the next 48 hours, in single calls of concurrent clients.
func Push(b *testing.B, open Open) { PushBy(b, open, Clients, 1) }

// PushBatch is like Push with 100 messages in a call, if the system has such calls. It also
// runs with fewer clients.
func PushBatch(b *testing.B, open Open) {
	for _, n := range []int{8, Clients} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) { PushBy(b, open, n, 100) })
	}
}

// PushBy is like Push, with this many clients, and batch messages in a call if the system has
// such calls.
func PushBy(b *testing.B, open Open, clients, batch int) {
	s := open(b)
	took := make([]time.Duration, (b.N+batch-1)/batch) // by each call
	now, cpu := time.Now(), CPU()
	b.ResetTimer()
	Each(b, clients, b.N, batch, func(ctx context.Context, from, to int) error {
		defer func(began time.Time) { took[from/batch] = time.Since(began) }(time.Now())
		if batch == 1 {
			return s.Push(ctx, Queue, from, now.Add(far(from)))
		}
		return s.PushMany(ctx, Queue, from, to, func(i int) time.Time { return now.Add(far(i)) })
	})
	reportRate(b, cpu)
	reportTimes(b, "call-", took)
}

// reportRate reports the rate of b.N messages over b's elapsed time, and the processor time
// since cpu.
func reportRate(b *testing.B, cpu time.Duration) {
	b.StopTimer()
	Report(b, float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	Report(b, float64((CPU()-cpu).Microseconds())/float64(b.N), "cpu-us/msg")
}
