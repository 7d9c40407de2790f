package redis

import (
	"testing"
	"time"
)

// BenchmarkBurst measures how long it takes until messages that fall due in one
// instant are handled and acked one by one, and until the first is handled.
func BenchmarkBurst(b *testing.B) {
	once(b)
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		s := open(b)
		d := schedule(b, s, *burstSize, func(first time.Time, _ int) time.Time { return first })
		end := d.deliver(b, s)
		report(b, end.Sub(d.dues[0]).Seconds(), "s")
		report(b, time.Unix(0, d.first.Load()).Sub(d.dues[0]).Seconds(), "s-to-first")
		d.reportCounts(b)
	})
}
