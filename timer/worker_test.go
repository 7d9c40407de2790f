package timer_test

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tarryhq/tarry/timer"
)

// Quick handlers come first, so that workers take many at once; then all but one
// of the workers are held until everything else was handled.
func TestRunnerTakesFromTheHandsOfTheSlow(t *testing.T) {
	for range 20 {
		eachCore(t, func(t *testing.T, core timer.Core[int]) {
			const n, workers = 2000, 4
			rest := make(chan struct{})
			var quick atomic.Int64
			r := timer.NewRunner(core, func(t timer.Timer[int]) {
				v := t.Value
				if v >= n/2 && v%100 == 0 && v < n/2+100*(workers-1) {
					<-rest
					return
				}
				if quick.Add(1) == n-(workers-1) {
					close(rest)
				}
			}, &timer.RunnerConfig{Workers: workers})
			for v := range n {
				r.After(time.Second, v)
			}
			time.Sleep(3 * time.Second)
			<-rest
			synctest.Wait()
			if s := r.Stats(); s.Fired != n || s.Running != 0 || s.Pending != 0 {
				t.Errorf("stats %+v", s)
			}
			closeRunner(t, r)
		})
	}
}

// One worker and quick handlers first, so that it takes many at once; then a
// slow one, behind which others wait in its hand.
func slowInTheMiddle(core timer.Core[int], slow time.Duration, ran *atomic.Int64) (r *timer.Runner[int], handles []timer.Handle) {
	r = timer.NewRunner(core, func(v timer.Timer[int]) {
		ran.Add(1)
		if v.Value == 35 {
			time.Sleep(slow)
		}
	}, &timer.RunnerConfig{Workers: 1})
	for v := range 200 {
		handles = append(handles, r.After(time.Second, v))
	}
	time.Sleep(2 * time.Second)
	return r, handles
}

func TestRunnerClosePutsBackWhatHasNotBegun(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		var ran atomic.Int64
		r, handles := slowInTheMiddle(core, time.Hour, &ran)
		closeRunner(t, r)
		if s := r.Stats(); s.Fired != 36 || s.Pending != 164 || ran.Load() != 36 {
			t.Errorf("%d ran; stats %+v", ran.Load(), s)
		}
		if _, ok := r.Cancel(handles[36]); !ok {
			t.Error("what has not begun could not be cancelled")
		}
		left := 0
		for _, v := range core.Drain() {
			if left++; v <= 36 {
				t.Errorf("%d is pending", v)
			}
		}
		if left != 163 {
			t.Errorf("%d left, want 163", left)
		}
	})
}

func TestRunnerCancelAndResetReachHands(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		var ran atomic.Int64
		r, handles := slowInTheMiddle(core, time.Hour, &ran)
		for v, h := range handles {
			if _, ok := r.Due(h); ok != (v > 35) {
				t.Errorf("%d has a due: %t", v, ok)
			}
			switch {
			case v%2 == 0:
				if _, ok := r.Cancel(h); ok != (v > 35) {
					t.Errorf("cancel of %d: %t", v, ok)
				}
			default:
				if ok := r.Reset(h, time.Now().Add(2*time.Hour)); ok != (v > 35) {
					t.Errorf("reset of %d: %t", v, ok)
				}
			}
		}
		time.Sleep(90 * time.Minute)
		if ran.Load() != 36 || r.Stats().Pending != 82 {
			t.Errorf("%d ran, %d pending", ran.Load(), r.Stats().Pending)
		}
		time.Sleep(time.Hour)
		if ran.Load() != 36+82 {
			t.Errorf("%d ran in the end", ran.Load())
		}
		closeRunner(t, r)
	})
}

// What waits behind a slow handler is not due any more once the clock is set back.
func TestRunnerClockIsSetBackBehindASlowHandler(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		var step, ran atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
		r := timer.NewRunner(core, func(v timer.Timer[int]) {
			if early := v.Due.Sub(now()); early > 0 {
				t.Errorf("%d ran %v early", v.Value, early)
			}
			if ran.Add(1) == 36 {
				time.Sleep(time.Minute)
			}
		}, &timer.RunnerConfig{Workers: 1, Now: now})
		for v := range 200 {
			r.After(time.Second, v)
		}
		time.Sleep(2 * time.Second)
		step.Store(int64(-time.Hour))
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if s := r.Stats(); ran.Load() != 36 || s.Pending != 164 || s.Running != 0 {
			t.Errorf("%d ran; stats %+v", ran.Load(), s)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if ran.Load() != 200 {
			t.Errorf("%d ran in the end", ran.Load())
		}
		closeRunner(t, r)
	})
}

// One worker is slow, with others' timers in its hand, and the other worker never
// comes to an end: each of its handlers makes another one due.
func TestRunnerSlowHandlersHoldUpNobodyUnderLoad(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		const n = 200
		var again atomic.Pointer[timer.Runner[int]]
		var ran atomic.Int64
		r := timer.NewRunner(core, func(v timer.Timer[int]) {
			switch {
			case v.Value == 150:
				time.Sleep(time.Hour)
			case v.Value >= n:
				time.Sleep(time.Second)
				again.Load().Schedule(v.Due.Add(time.Second/2), v.Value)
				return
			}
			ran.Add(1)
		}, &timer.RunnerConfig{Workers: 2})
		again.Store(r)
		for v := range n {
			r.After(time.Second, v)
		}
		for v := range 5 {
			r.After(time.Second, n+v)
		}
		time.Sleep(10 * time.Minute)
		if ran.Load() != n-1 {
			t.Errorf("%d of %d ran", ran.Load(), n-1)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = r.Close(ended)
		closeRunner(t, r)
	})
}

// Quick handlers fill a worker's hand, and then each of those in it is slow.
func TestRunnerSharesOutAHandOfSlowHandlers(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		const quick, workers = 7, 24
		var slow atomic.Int64
		r := timer.NewRunner(core, func(v timer.Timer[int]) {
			if v.Value >= quick {
				slow.Add(1)
				time.Sleep(time.Hour)
			}
		}, &timer.RunnerConfig{Workers: workers})
		for v := range quick + workers {
			r.After(time.Second, v)
		}
		time.Sleep(2 * time.Second)
		if slow.Load() != workers {
			t.Errorf("%d of %d run, for %d workers", slow.Load(), workers, workers)
		}
		closeRunner(t, r)
	})
}

func TestRunnerLatenessHasAnEnd(t *testing.T) {
	eachCore(t, func(t *testing.T, core timer.Core[int]) {
		r := timer.NewRunner(core, func(timer.Timer[int]) {}, nil)
		for v := range 5 {
			r.Schedule(time.Time{}, v)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s := r.Stats(); s.LateSum != math.MaxInt64 || s.Late < 100*365*24*time.Hour || s.Fired != 5 {
			t.Errorf("stats %+v", s)
		}
		closeRunner(t, r)
	})
}

// Whoever has filled a hand with many keeps none of them with one that is slow.
func TestRunnerKeepsNothingThatWasHandled(t *testing.T) {
	const n = 200
	slow, goOn := make(chan struct{}), make(chan struct{})
	var again atomic.Pointer[timer.Runner[*[64]int]]
	core := timer.NewWheel[*[64]int](time.Millisecond, epoch)
	r := timer.NewRunner(timer.Core[*[64]int](core), func(v timer.Timer[*[64]int]) {
		switch v.Value[0] {
		case n - 1:
			again.Load().Schedule(epoch.Add(time.Second), &[64]int{n})
		case n:
			close(slow)
			<-goOn
		}
	}, &timer.RunnerConfig{Workers: 1, Now: func() time.Time { return epoch.Add(time.Hour) }})
	again.Store(r)
	var kept [n]weak.Pointer[[64]int]
	for i := range n {
		v := &[64]int{i}
		kept[i] = weak.Make(v)
		r.Schedule(epoch, v)
	}
	<-slow
	runtime.GC()
	for i, v := range kept {
		if v.Value() != nil {
			t.Errorf("%d is kept", i)
		}
	}
	close(goOn)
	closeRunner(t, r)
}
