package timer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// 10,000,000 timers of the Go runtime take over a gigabyte.
var maxPending = flag.Int("pending", 1_000_000, "most timers that benchmarks let pend")

var pendings = []int{0, 10_000, 1_000_000, 10_000_000}

// handles of a timer implementation, by number.
type bench interface {
	add(i int, d time.Duration) // start timer i and keep it
	addCancel(d time.Duration)  // start one and stop it
	// resets winds back one of the n timers after another, to later than before,
	// in steps of so many numbers. As in a loop over connections, the time is
	// not computed anew for each.
	resets(b *testing.B, n, step int)
}

type coreBench struct {
	core    timer.Core[uint64]
	handles []timer.Handle
	now     time.Time
	beat    time.Time
}

func (c *coreBench) add(i int, d time.Duration) {
	c.handles[i] = c.core.Schedule(c.now.Add(d), uint64(i))
}
func (c *coreBench) addCancel(d time.Duration) { c.core.Cancel(c.core.Schedule(c.now.Add(d), 0)) }
func (c *coreBench) resets(b *testing.B, n, step int) {
	due, i := c.beat, 0
	for b.Loop() {
		if i&63 == 0 {
			due = due.Add(time.Microsecond)
		}
		c.core.Reset(c.handles[i], due)
		if i += step; i >= n {
			i -= n
		}
	}
	c.beat = due
}

type runnerBench struct {
	runner  *timer.Runner[uint64]
	handles []timer.Handle
	now     time.Time
	beat    time.Time
}

func (r *runnerBench) add(i int, d time.Duration) {
	r.handles[i] = r.runner.Schedule(r.now.Add(d), uint64(i))
}
func (r *runnerBench) addCancel(d time.Duration) {
	r.runner.Cancel(r.runner.Schedule(r.now.Add(d), 0))
}
func (r *runnerBench) resets(b *testing.B, n, step int) {
	due, i := r.beat, 0
	for b.Loop() {
		if i&63 == 0 {
			due = due.Add(time.Microsecond)
		}
		r.runner.Reset(r.handles[i], due)
		if i += step; i >= n {
			i -= n
		}
	}
	r.beat = due
}

type runtimeBench struct {
	timers []*time.Timer
	beat   time.Duration
}

func nothing() {}

func (r *runtimeBench) add(i int, d time.Duration) { r.timers[i] = time.AfterFunc(d, nothing) }
func (r *runtimeBench) addCancel(d time.Duration)  { time.AfterFunc(d, nothing).Stop() }
func (r *runtimeBench) resets(b *testing.B, n, step int) {
	d, i := r.beat, 0
	for b.Loop() {
		if i&63 == 0 {
			d += time.Microsecond
		}
		r.timers[i].Reset(d)
		if i += step; i >= n {
			i -= n
		}
	}
	r.beat = d
}

// spread is a random delay within 48 hours, and none so short that it ends
// while the benchmark runs.
func spread(r *rand.Rand) time.Duration {
	return time.Hour + time.Duration(r.Int64N(int64(47*time.Hour)))
}

// BenchmarkTimers measures each implementation with so many timers pending
// over 48 hours. The bytes are of all structures but the caller's handles.
func BenchmarkTimers(b *testing.B) {
	// The runtime comes last: what it keeps of stopped timers would be the burden of
	// the collections measured after it.
	for _, impl := range []string{"Wheel", "Runner", "Ring", "Heap", "Runtime"} {
		for _, n := range pendings {
			if n <= *maxPending {
				b.Run(fmt.Sprintf("impl=%s/pending=%d", impl, n), func(b *testing.B) { benchTimers(b, impl, n) })
			}
		}
	}
}

func benchTimers(b *testing.B, impl string, n int) {
	now := time.Now().Round(0)
	var t bench
	parallel := false
	handles := make([]timer.Handle, n)
	timers := make([]*time.Timer, 0)
	if impl == "Runtime" {
		timers = make([]*time.Timer, n)
	}
	before := heapInUse()
	switch impl {
	case "Runtime":
		t, parallel = &runtimeBench{timers, 48 * time.Hour}, true
	case "Wheel":
		t = &coreBench{timer.NewWheel[uint64](time.Millisecond, now), handles, now, now.Add(48 * time.Hour)}
	case "Ring":
		t = &coreBench{timer.NewRing[uint64](0, 0, now), handles, now, now.Add(48 * time.Hour)}
	case "Heap":
		t = &coreBench{timer.NewHeap[uint64](now), handles, now, now.Add(48 * time.Hour)}
	case "Runner":
		r := timer.NewRunner[uint64](timer.NewWheel[uint64](time.Millisecond, now), func(timer.Timer[uint64]) {}, nil)
		defer closeRunner(b, r)
		t, parallel = &runnerBench{r, handles, now, now.Add(48 * time.Hour)}, true
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		t.add(i, spread(random))
	}
	held := heapInUse() - before
	b.Run("op=schedule-cancel", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.addCancel(spread(random))
		}
	})
	if parallel {
		b.Run("op=schedule-cancel-parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(3, 4))
				for pb.Next() {
					t.addCancel(spread(random))
				}
			})
		})
	}
	if n > 0 {
		// Heartbeats: of all timers in turn, and jumping about by the golden
		// section, which is a matter of the memory's speed.
		b.Run("op=reset", func(b *testing.B) {
			b.ReportAllocs()
			t.resets(b, n, 1)
		})
		b.Run("op=reset-jumping", func(b *testing.B) {
			b.ReportAllocs()
			t.resets(b, n, int(float64(n)*0.618)|1)
		})
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
	for _, t := range timers {
		t.Stop()
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(handles)
}

// BenchmarkFire hands over a million timers due in one tick.
func BenchmarkFire(b *testing.B) {
	const n = 1_000_000
	b.Run("impl=Wheel", func(b *testing.B) {
		b.ReportAllocs()
		w := timer.NewWheel[uint64](time.Millisecond, epoch)
		due := epoch
		for b.Loop() {
			b.StopTimer()
			due = due.Add(time.Minute)
			for i := range n {
				w.Schedule(due, uint64(i))
			}
			b.StartTimer()
			for range w.Advance(due) {
			}
		}
	})
	b.Run("impl=Runner", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			var clock atomic.Int64
			now := func() time.Time { return epoch.Add(time.Duration(clock.Load())) }
			var left sync.WaitGroup
			left.Add(n + 1)
			r := timer.NewRunner[uint64](timer.NewWheel[uint64](time.Millisecond, epoch),
				func(timer.Timer[uint64]) { left.Done() }, &timer.RunnerConfig{Now: now})
			due := epoch.Add(time.Minute)
			for i := range n {
				r.Schedule(due, uint64(i))
			}
			b.StartTimer()
			clock.Store(int64(2 * time.Minute))
			r.Schedule(epoch, 0) // wakes it, as its real timer would
			left.Wait()
			b.StopTimer()
			closeRunner(b, r)
			b.StartTimer()
		}
	})
	b.Run("impl=Runtime", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			var left sync.WaitGroup
			left.Add(n)
			due := time.Now().Add(2 * time.Second)
			for range n {
				time.AfterFunc(time.Until(due), left.Done)
			}
			time.Sleep(time.Until(due))
			b.StartTimer()
			left.Wait()
		}
	})
}

// BenchmarkWorkers lets so many slow handlers end at once.
func BenchmarkWorkers(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			for b.Loop() {
				var busy, left sync.WaitGroup
				busy.Add(n)
				left.Add(n)
				r := timer.NewRunner[int](timer.NewWheel[int](time.Millisecond, epoch), func(timer.Timer[int]) {
					busy.Done()
					busy.Wait()
					left.Done()
				}, &timer.RunnerConfig{Workers: n})
				for i := range n {
					r.Schedule(epoch, i)
				}
				left.Wait()
				closeRunner(b, r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/timer")
		})
	}
}
