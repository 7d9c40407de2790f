package scenario

import (
	"testing"
	"time"
)

// Burst measures messages that all fall due at the same instant. It reports the time from then
// until all are handled and acked one by one, and until the first is handled.
func Burst(b *testing.B, open Open) {
	Once(b)
	s := open(b)
	d := schedule(b, s, *BurstSize, func(first time.Time, _ int) time.Time { return first })
	cpu := CPU()
	end := d.deliver(b, s)
	Report(b, (CPU() - cpu).Seconds(), "cpu-s")
	Report(b, end.Sub(d.dues[0]).Seconds(), "s")
	Report(b, time.Unix(0, d.first.Load()).Sub(d.dues[0]).Seconds(), "s-to-first")
	d.reportCounts(b)
}
