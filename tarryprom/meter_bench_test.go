package tarryprom_test

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarryprom"
)

// What the meter itself costs of a message, on one goroutine, by what it is told of it. What
// that is of the whole, make bench-cost measures.
func BenchmarkMeter(b *testing.B) {
	metrics := tarryprom.New(nil)
	m := metrics.Meter()
	due := time.Now()
	acked := []tarry.Event{{Kind: tarry.Acked, Queue: "q", Duration: time.Millisecond, Count: 1}}
	leases := []tarry.Lease{{Info: tarry.Info{Queue: "q", Due: due}}}
	for _, part := range []struct {
		name string
		tell func()
	}{
		{"called", func() { m.Called("push", time.Millisecond, nil) }},
		{"pushed", func() { m.Pushed("q", tarry.Created, nil, 1) }},
		{"granted", func() { m.Granted(leases, due.Add(time.Millisecond)) }},
		{"started", func() { m.Started("q", time.Millisecond) }},
		{"answered", func() { metrics.Answered("/v1/messages", "POST", 201, time.Millisecond) }},
		{"acked", func() { m.Handled(acked) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.tell()
			}
		})
	}
}
