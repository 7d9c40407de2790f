package scenario

import (
	"context"
	"testing"
	"time"
)

// Churn pushes b.N messages from concurrent clients, batch in a call, while earlier messages
// are handled and acked. Each message is due 200 ms after its push.
func Churn(b *testing.B, open Open, clients, batch int) {
	const wait = 200 * time.Millisecond
	s := open(b)
	d := newDelivery(b.N)
	stop := s.Work(b, []string{Queue}, d.started)
	defer stop()
	began, cpu := time.Now(), CPU()
	Each(b, clients, b.N, batch, func(ctx context.Context, from, to int) error {
		due := time.Now().Add(wait).Truncate(time.Millisecond)
		for i := from; i < to; i++ {
			d.dues[i] = due
		}
		if batch == 1 {
			return s.Push(ctx, Queue, from, due)
		}
		return s.PushMany(ctx, Queue, from, to, func(int) time.Time { return due })
	})
	end := d.await(b, s)
	Report(b, float64(b.N)/(end.Sub(began)-wait).Seconds(), "msgs/s")
	Report(b, float64((CPU()-cpu).Microseconds())/float64(b.N), "cpu-us/msg")
	d.reportCounts(b)
}
