//go:build unix

package tarryprom_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/tarryprom"
)

// What metrics cost: messages pushed by 64 clients and handled by a worker, with and
// without, in pairs whose order alternates. Of each pair the ratio is taken, and the median
// of these is reported: of the time, which is noisy beside others on the machine, and of the
// processor time of this process, which is less so. How far the middle half of the pairs lies
// apart is reported too: a cost that is less than that is not told apart from none.
func BenchmarkCost(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(b *testing.B) (engine.Engine, error)
	}{
		{"mem", func(*testing.B) (engine.Engine, error) { return memengine.New(nil), nil }},
		{"disk", func(b *testing.B) (engine.Engine, error) { return diskengine.Open(b.TempDir(), nil) }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			turn := func(cfg *tarry.Config) (took, processor float64) {
				eng, err := kind.open(b)
				if err != nil {
					b.Fatal(err)
				}
				defer eng.Close()
				c := tarry.New(eng, cfg)
				defer c.Close()
				runtime.GC()
				before := processorTime(b)
				took = through(b, c, 20_000).Seconds()
				return took, (processorTime(b) - before).Seconds()
			}
			with := func() (float64, float64) { return turn(&tarry.Config{Meter: tarryprom.New(nil).Meter()}) }
			without := func() (float64, float64) { return turn(nil) }
			without() // warms up
			var times, processor []float64
			for b.Loop() {
				for i := range 20 {
					var on, off, onCPU, offCPU float64
					if i%2 == 0 {
						on, onCPU = with()
						off, offCPU = without()
					} else {
						off, offCPU = without()
						on, onCPU = with()
					}
					times, processor = append(times, 100*(on/off-1)), append(processor, 100*(onCPU/offCPU-1))
				}
			}
			slices.Sort(times)
			slices.Sort(processor)
			n := len(times)
			b.ReportMetric(times[n/2], "%time")
			b.ReportMetric(times[3*n/4]-times[n/4], "%time-apart")
			b.ReportMetric(processor[n/2], "%cpu")
			b.ReportMetric(processor[3*n/4]-processor[n/4], "%cpu-apart")
		})
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// through pushes and handles n messages, and returns how long that took.
func through(b *testing.B, c *tarry.Client, n int) time.Duration {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w := tarry.NewWorker(c, nil)
	var left atomic.Int64
	left.Store(int64(n))
	tarry.Handle(w, tarry.NewTopic[[]byte]("q"), func(context.Context, *tarry.Message[[]byte]) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	})
	start := time.Now()
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			for j := i; j < n; j += 64 {
				if _, err := c.Push(b.Context(), "q", make([]byte, 200), tarry.Key(strconv.Itoa(j))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	if err := w.Run(ctx); err != nil {
		b.Error(err)
	}
	clients.Wait()
	return time.Since(start)
}

// What the meter itself costs of a message, on one goroutine, by what it is told of it.
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
