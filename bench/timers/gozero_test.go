package timers

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zeromicro/go-zero/core/collection"
	"github.com/zeromicro/go-zero/core/logx"

	"github.com/tarryhq/tarry/timer"
)

var maxPending = flag.Int("pending", 1_000_000, "most timers that benchmarks let pend")

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func spread(r *rand.Rand) time.Duration {
	return time.Hour + time.Duration(r.Int64N(int64(47*time.Hour)))
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkTimers is package timer's, for go-zero's TimingWheel of an hour of
// seconds.
func BenchmarkTimers(b *testing.B) {
	logx.SetWriter(logx.NewWriter(io.Discard))
	for _, n := range []int{0, 10_000, 1_000_000, 10_000_000} {
		if n <= *maxPending {
			b.Run(fmt.Sprintf("impl=go-zero/pending=%d", n), func(b *testing.B) { benchTimers(b, n) })
		}
	}
}

func benchTimers(b *testing.B, n int) {
	before := heapInUse()
	w, err := collection.NewTimingWheel(time.Second, 3600, func(any, any) {})
	must(b, err)
	defer w.Stop()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		must(b, w.SetTimer(i, uint64(i), spread(random)))
	}
	held := heapInUse() - before
	b.Run("op=schedule-cancel", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, w.SetTimer(-1, uint64(0), spread(random)))
			must(b, w.RemoveTimer(-1))
		}
	})
	b.Run("op=schedule-cancel-parallel", func(b *testing.B) {
		b.ReportAllocs()
		var keys atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			key := int(-2 - keys.Add(1))
			random := rand.New(rand.NewPCG(3, 4))
			for pb.Next() {
				if w.SetTimer(key, uint64(0), spread(random)) != nil || w.RemoveTimer(key) != nil {
					b.Error("go-zero refused")
				}
			}
		})
	})
	if n == 0 {
		return
	}
	beat := 48 * time.Hour
	for op, step := range map[string]int{"op=reset": 1, "op=reset-jumping": int(float64(n)*0.618) | 1} {
		b.Run(op, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i&63 == 0 {
					beat += time.Microsecond
				}
				must(b, w.MoveTimer(i, beat))
				if i += step; i >= n {
					i -= n
				}
			}
		})
	}
	b.Run("op=gc", func(b *testing.B) {
		var m runtime.MemStats
		var pause uint64
		for b.Loop() {
			runtime.GC()
			runtime.ReadMemStats(&m)
			pause = max(pause, m.PauseNs[(m.NumGC+255)%256])
		}
		b.ReportMetric(float64(pause)/1e3, "pause-us")
		b.ReportMetric(float64(held)/float64(n), "B/timer")
	})
}

// BenchmarkEarly counts how many of 5,000 timers fire before they are due, at
// the same tick of 10 ms.
func BenchmarkEarly(b *testing.B) {
	const n = 5000
	type task struct{ due time.Time }
	run := func(b *testing.B, schedule func(*task), fired <-chan bool) {
		early := 0
		for b.Loop() {
			for i := range n {
				schedule(&task{time.Now().Add(50*time.Millisecond + time.Duration(i)*100*time.Microsecond)})
			}
			for range n {
				if <-fired {
					early++
				}
			}
		}
		b.ReportMetric(float64(early)/float64(b.N), "early/op")
		b.ReportMetric(n, "timers/op")
	}
	b.Run("impl=go-zero", func(b *testing.B) {
		fired := make(chan bool, n)
		w, err := collection.NewTimingWheel(10*time.Millisecond, 3600, func(_, v any) {
			fired <- time.Now().Before(v.(*task).due)
		})
		must(b, err)
		defer w.Stop()
		run(b, func(v *task) { must(b, w.SetTimer(v, v, time.Until(v.due))) }, fired)
	})
	b.Run("impl=Runner", func(b *testing.B) {
		fired := make(chan bool, n)
		r := timer.NewRunner[*task](timer.NewWheel[*task](10*time.Millisecond, time.Now()), func(t timer.Timer[*task]) {
			fired <- time.Now().Before(t.Value.due)
		}, nil)
		defer func() { must(b, r.Close(b.Context())) }()
		run(b, func(v *task) { r.Schedule(v.due, v) }, fired)
	})
}
