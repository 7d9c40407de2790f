package timer_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/tarryhq/tarry/timer"
)

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestWheelMemory(t *testing.T) {
	const n = 500_000
	random := rand.New(rand.NewPCG(1, 2))
	before := heapInUse()
	w := timer.NewWheel[uint64](time.Millisecond, epoch)
	if got := heapInUse() - before; got > 1024 {
		t.Errorf("an empty wheel takes %d bytes", got)
	}
	for i := range n {
		w.Schedule(epoch.Add(time.Duration(random.Int64N(int64(48*time.Hour)))), uint64(i))
		if i%1000 == 0 {
			w.Next()
		}
	}
	if got := float64(heapInUse()-before) / n; got > 40 {
		t.Errorf("%.1f bytes a timer, want at most 40", got)
	}
	// The spike passes: half fires, half is cancelled.
	for range w.Advance(epoch.Add(24 * time.Hour)) {
	}
	for range w.Advance(epoch.Add(48 * time.Hour)) {
	}
	if got := heapInUse() - before; w.Len() != 0 || got > 256<<10 {
		t.Errorf("%d bytes kept after a spike, %d pending", got, w.Len())
	}
	runtime.KeepAlive(w)
}

func TestWheelAllocatesNothingInSteadyState(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := timer.NewWheel[uint64](time.Millisecond, epoch)
	now := epoch
	handles := make([]timer.Handle, 20_000)
	for i := range handles {
		handles[i] = w.Schedule(now.Add(time.Duration(random.Int64N(int64(time.Minute)))), 0)
	}
	step := func() {
		now = now.Add(time.Millisecond)
		for range w.Advance(now) {
		}
		for range 10 {
			i := random.IntN(len(handles))
			due := now.Add(time.Duration(random.Int64N(int64(time.Minute))))
			if !w.Reset(handles[i], due) {
				handles[i] = w.Schedule(due, 0)
			}
			w.Cancel(w.Schedule(due, 1))
			w.Next()
		}
	}
	for range 30_000 {
		step()
	}
	if n := testing.AllocsPerRun(20_000, step); n > 0.05 {
		t.Errorf("%v allocations for 20 operations and more", n)
	}
}

func TestWheelFarDues(t *testing.T) {
	w := timer.NewWheel[int](time.Millisecond, epoch)
	dues := []time.Time{
		time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC),
		epoch,
		time.Unix(1<<55, 0), // beyond what fires
	}
	for i, due := range dues {
		w.Schedule(due, i)
	}
	for _, i := range []int{1, 3, 2, 0} {
		next, ok := w.Next()
		if want := dues[i].Add(time.Millisecond - 1).Truncate(time.Millisecond); !ok || !next.Equal(want) {
			t.Errorf("next %v, %t; want %v", next, ok, want)
		}
		if got := collect(w, next.Add(-time.Nanosecond)); len(got) != 0 {
			t.Errorf("early: %v", got)
		}
		if got := collect(w, next); len(got) != 1 || got[0] != i {
			t.Errorf("fired %v, want %d", got, i)
		}
	}
	if got := collect(w, time.Unix(1<<56, 0)); len(got) != 0 || w.Len() != 1 {
		t.Errorf("fired %v", got)
	}
}

func TestWheelUseInsideTheLoop(t *testing.T) {
	w := timer.NewWheel[int](time.Millisecond, epoch)
	a := w.Schedule(epoch.Add(1*time.Second), 1)
	b := w.Schedule(epoch.Add(2*time.Second), 2)
	c := w.Schedule(epoch.Add(3*time.Second), 3)
	var got []int
	for _, v := range w.Advance(epoch.Add(5 * time.Second)) {
		got = append(got, v)
		if v == 1 {
			if _, ok := w.Cancel(a); ok {
				t.Error("cancelled what has fired")
			}
			w.Cancel(b)
			w.Reset(c, epoch.Add(time.Minute))
			w.Schedule(epoch.Add(4*time.Second), 4)
		}
	}
	if len(got) != 2 || got[1] != 4 || w.Len() != 1 {
		t.Errorf("fired %v, %d left", got, w.Len())
	}
}

// With the usual limits: a wheel grows many wheels of its own, whose entries
// then move away, so that they are swept up while one more is filed there.
func TestWheelSweepsWithoutLoss(t *testing.T) {
	const us, rounds = time.Microsecond, 150
	w := timer.NewWheel[int](us, epoch)
	front := epoch.Add(time.Second)
	first := w.Schedule(front, -1)
	w.Schedule(epoch.Add(1000*time.Hour), -1)
	file := func() {
		front = front.Add(us)
		w.Reset(first, front)
		w.Next()
	}
	schedule := func(n int, due time.Time) (handles []timer.Handle) {
		for range n {
			handles = append(handles, w.Schedule(due, -1))
		}
		return handles
	}
	cancel := func(handles []timer.Handle) {
		for _, h := range handles {
			w.Cancel(h)
		}
	}
	for i := range rounds {
		a := epoch.Add(time.Hour + time.Duration(i)<<24*us)
		b := a.Add(3 * time.Second)
		atA, atB := schedule(1200, a), schedule(3000, b)
		file()
		cancel(atA)
		atB = append(atB, schedule(1096, b)...)
		file()
		for _, h := range atB {
			w.Reset(h, epoch.Add(900*time.Hour))
		}
		w.Schedule(b, i)
		file()
		cancel(atB)
	}
	want := 0
	for _, v := range w.Advance(epoch.Add(800 * time.Hour)) {
		if v < 0 {
			continue // the first
		}
		if v != want {
			t.Fatalf("fired %d, want %d", v, want)
		}
		want++
	}
	if want != rounds {
		t.Errorf("fired %d of %d", want, rounds)
	}
}

// What survives a spike, one here and one there, keeps little of its memory.
func TestWheelMemoryAfterASpike(t *testing.T) {
	const n, most = 500_000, 2 << 20
	for _, name := range []string{"wheel", "ring", "heap"} {
		t.Run(name, func(t *testing.T) {
			var core timer.Core[uint64]
			random := rand.New(rand.NewPCG(1, 2))
			handles := make([]timer.Handle, n)
			before := heapInUse()
			switch name {
			case "wheel":
				core = timer.NewWheel[uint64](time.Millisecond, epoch)
			case "ring":
				core = timer.NewRing[uint64](0, 0, epoch)
			case "heap":
				core = timer.NewHeap[uint64](epoch)
			}
			for i := range handles {
				handles[i] = core.Schedule(epoch.Add(time.Duration(random.Int64N(int64(48*time.Hour)))), uint64(i))
			}
			for i, h := range handles {
				if i%1000 != 0 {
					core.Cancel(h)
				}
			}
			core.Next()
			if got := heapInUse() - before; got > most {
				t.Errorf("%d survivors keep %d bytes", core.Len(), got)
			}
			runtime.KeepAlive(core)
			runtime.KeepAlive(handles)
		})
	}
}
