package timer_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/timer"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cores are the structures that a Runner may drive.
func cores(now time.Time) map[string]timer.Core[int] {
	return map[string]timer.Core[int]{
		"wheel": timer.NewWheel[int](time.Millisecond, now),
		"ring":  timer.NewRing[int](60, time.Second, now),
		"heap":  timer.NewHeap[int](now),
	}
}

func eachCore(t *testing.T, test func(*testing.T, timer.Core[int])) {
	for name := range cores(time.Now()) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, cores(time.Now())[name]) })
		})
	}
}

func closeRunner[T any](t testing.TB, r *timer.Runner[T]) {
	t.Helper()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRunnerIsIdleWithNothingPending(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		r := timer.NewRunner(core, func(timer.Timer[int]) {}, nil)
		h := r.After(time.Hour, 1)
		synctest.Wait()
		r.Cancel(h)
		time.Sleep(2 * time.Second)
		before := r.Stats().Wakes
		time.Sleep(48 * time.Hour)
		if woken := r.Stats().Wakes - before; woken != 0 {
			t.Errorf("woke %d times with nothing pending", woken)
		}
		closeRunner(t, r)
	})
}

func TestRunnerWakesOnceASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := timer.NewRunner[int](timer.NewWheel[int](time.Millisecond, time.Now()), func(timer.Timer[int]) {}, nil)
		r.After(time.Hour, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := r.Stats(); s.Wakes > 3605 || s.Fired != 1 {
			t.Errorf("stats: %+v", s)
		}
		closeRunner(t, r)
	})
}

func TestRunnerNoticesClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var step atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
		var fired atomic.Int64
		r := timer.NewRunner[int](timer.NewWheel[int](time.Millisecond, now()), func(timer.Timer[int]) { fired.Add(1) },
			&timer.RunnerConfig{Now: now})
		r.After(10*time.Hour, 1)
		r.After(30*time.Minute, 2)
		time.Sleep(time.Minute)
		step.Store(int64(10 * time.Hour))
		time.Sleep(time.Second)
		synctest.Wait()
		if fired.Load() != 2 {
			t.Errorf("%d fired after a step forward, want 2", fired.Load())
		}
		r.After(time.Minute, 3)
		step.Store(0)
		time.Sleep(9 * time.Hour)
		synctest.Wait()
		if fired.Load() != 2 {
			t.Errorf("%d fired after a step backward, want 2", fired.Load())
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if fired.Load() != 3 {
			t.Errorf("%d fired in the end, want 3", fired.Load())
		}
		closeRunner(t, r)
	})
}

func TestRunnerSurvivesPanicsAndGoexit(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		var caught, handled atomic.Int64
		r := timer.NewRunner(core, func(v timer.Timer[int]) {
			switch v.Value % 3 {
			case 0:
				panic("oh")
			case 1:
				runtime.Goexit()
			}
			handled.Add(1)
		}, &timer.RunnerConfig{Workers: 2, OnPanic: func(any, []byte) { caught.Add(1) }})
		for v := range 30 {
			r.After(time.Second, v)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if caught.Load() != 10 || handled.Load() != 10 || r.Stats().Panics != 10 || r.Stats().Running != 0 {
			t.Errorf("caught %d, handled %d, stats %+v", caught.Load(), handled.Load(), r.Stats())
		}
		closeRunner(t, r)
	})
}

func TestRunnerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		r := timer.NewRunner[int](timer.NewWheel[int](time.Millisecond, time.Now()), func(timer.Timer[int]) {
			time.Sleep(time.Minute)
			done.Store(true)
		}, nil)
		r.After(time.Second, 1)
		r.After(time.Hour, 2)
		time.Sleep(2 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(short); err != context.DeadlineExceeded {
			t.Errorf("close with a handler running: %v", err)
		}
		if h := r.After(0, 3); h != 0 {
			t.Error("scheduled after Close")
		}
		closeRunner(t, r)
		if !done.Load() {
			t.Error("closed before the handler was done")
		}
		if s := r.Stats(); s.Fired != 1 || s.Pending != 1 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// Many goroutines at once, in real time: every timer either fires once or is
// cancelled, and none early.
func TestRunnerRaces(t *testing.T) {
	const each = 2000
	type task struct{ due time.Time }
	var fired, cancelled, early atomic.Int64
	all := make(chan struct{})
	count := func(n *atomic.Int64) {
		n.Add(1)
		if fired.Load()+cancelled.Load() == 4*each {
			select {
			case all <- struct{}{}:
			default:
			}
		}
	}
	all = make(chan struct{}, 1)
	// What the Runner was shown counts: the machine's clock may step meanwhile.
	var shown atomic.Int64
	clock := func() time.Time {
		now := time.Now()
		for n := now.UnixNano(); ; {
			if old := shown.Load(); old >= n || shown.CompareAndSwap(old, n) {
				return now
			}
		}
	}
	r := timer.NewRunner[*task](timer.NewWheel[*task](time.Millisecond, time.Now()), func(v timer.Timer[*task]) {
		if shown.Load() < v.Value.due.UnixNano() {
			early.Add(1)
		}
		count(&fired)
	}, &timer.RunnerConfig{Now: clock})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range each {
				v := &task{time.Now().Add(time.Duration(i%50) * 100 * time.Microsecond)}
				h := r.Schedule(v.due, v)
				switch (i + g) % 3 {
				case 0:
					if _, ok := r.Cancel(h); ok {
						count(&cancelled)
					}
				case 1:
					r.Reset(h, v.due.Add(time.Millisecond))
				}
			}
		})
	}
	wg.Wait()
	<-all
	closeRunner(t, r)
	if early.Load() != 0 || fired.Load()+cancelled.Load() != 4*each {
		t.Errorf("fired %d, cancelled %d, early %d", fired.Load(), cancelled.Load(), early.Load())
	}
}

func TestRunnerAfterClose(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		r := timer.NewRunner(core, func(timer.Timer[int]) { t.Error("called") }, nil)
		a, b := r.After(time.Hour, 1), r.After(2*time.Hour, 2)
		closeRunner(t, r)
		if h := r.Schedule(time.Now(), 3); h != 0 || core.Len() != 2 {
			t.Errorf("scheduled as %d, %d pending", h, core.Len())
		}
		due, _ := r.Due(a)
		if r.Reset(a, time.Now()) {
			t.Error("reset, and nothing will come of it")
		}
		if after, ok := r.Due(a); !ok || !after.Equal(due) {
			t.Errorf("due %v, %t; want %v", after, ok, due)
		}
		if v, ok := r.Cancel(b); !ok || v != 2 {
			t.Errorf("cancelled %d, %t", v, ok)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 200 {
			if err := r.Close(ended); err != nil {
				t.Fatalf("close of what is closed: %v", err)
			}
		}
	})
}

func TestRunnerNeedsACoreAndAHandler(t *testing.T) {
	handle := func(timer.Timer[int]) {}
	for name, start := range map[string]func(){
		"no handler":  func() { timer.NewRunner(timer.Core[int](timer.NewHeap[int](epoch)), nil, nil) },
		"no core":     func() { timer.NewRunner(nil, handle, nil) },
		"a nil wheel": func() { timer.NewRunner(timer.Core[int]((*timer.Wheel[int])(nil)), handle, nil) },
		"a nil ring":  func() { timer.NewRunner(timer.Core[int]((*timer.Ring[int])(nil)), handle, nil) },
		"a nil heap":  func() { timer.NewRunner(timer.Core[int]((*timer.Heap[int])(nil)), handle, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			start()
		})
	}
}

// The hand of a ring passes a far-away task once a turn, and that is one
// wake-up, with no worker.
func TestRunnerWakesOnceATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := timer.NewRunner(timer.Core[int](timer.NewRing[int](64, time.Millisecond, time.Now())), func(timer.Timer[int]) {}, nil)
		r.After(time.Hour, 1)
		time.Sleep(10 * time.Minute)
		if s := r.Stats(); s.Wakes > 600_000/64+1 {
			t.Errorf("woke %d times", s.Wakes)
		}
		closeRunner(t, r)
	})
}

// A due before all that a structure can tell apart is in the past like any
// other.
func TestRunnerFiresWhatWasDueLongAgo(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		var ran atomic.Int64
		r := timer.NewRunner(core, func(timer.Timer[int]) { ran.Add(1) }, nil)
		r.Schedule(time.Time{}, 1)
		r.After(math.MinInt64, 2)
		r.After(time.Second, 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if ran.Load() != 3 {
			t.Errorf("%d of 3 ran", ran.Load())
		}
		closeRunner(t, r)
	})
}
