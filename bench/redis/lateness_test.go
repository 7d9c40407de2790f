package redis

import (
	"testing"
	"time"
)

// BenchmarkLateness measures from the due time of messages that fall due at a
// steady rate to the start of their handlers.
func BenchmarkLateness(b *testing.B) {
	once(b)
	compare(b, func(b *testing.B, open func(*testing.B) system) {
		s := open(b)
		d := schedule(b, s, int(float64(*rate)*span.Seconds()), func(first time.Time, i int) time.Time {
			return first.Add(time.Duration(i) * time.Second / time.Duration(*rate)).Truncate(time.Millisecond)
		})
		d.deliver(b, s)
		late := d.lateness()
		for unit, q := range map[string]float64{"p50-ms": 0.50, "p99-ms": 0.99, "max-ms": 1} {
			report(b, float64(quantile(late, q))/1e6, unit)
		}
		d.reportCounts(b)
	})
}
