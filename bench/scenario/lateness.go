package scenario

import (
	"testing"
	"time"
)

// Lateness measures the time from due to the start of the handler, for messages that fall due
// at a steady rate. The flag beside adds pushes of other messages, which stay; the System's
// Empty must not count them.
func Lateness(b *testing.B, open Open) {
	Once(b)
	s := open(b)
	d := schedule(b, s, int(float64(*rate)*Span.Seconds()), func(first time.Time, i int) time.Time {
		return first.Add(time.Duration(i) * time.Second / time.Duration(*rate)).Truncate(time.Millisecond)
	})
	stop := pushBeside(b, s)
	cpu := CPU()
	d.deliver(b, s)
	Report(b, (CPU() - cpu).Seconds(), "cpu-s")
	stop()
	reportTimes(b, "", d.lateness())
	d.reportCounts(b)
}

// reportTimes reports how long calls took, or how late messages were.
func reportTimes(b *testing.B, of string, times []time.Duration) {
	for unit, q := range map[string]float64{"p50-ms": 0.50, "p99-ms": 0.99, "p99.9-ms": 0.999, "max-ms": 1} {
		Report(b, float64(quantile(times, q))/1e6, of+unit)
	}
}
