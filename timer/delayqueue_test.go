package timer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/timer"
)

func TestDelayQueueTakesInOrderWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := timer.NewDelayQueue[int](), time.Now()
		for _, hours := range []int{48, 1, 24, 2} {
			q.Put(start.Add(time.Duration(hours)*time.Hour), hours)
		}
		for _, want := range []int{1, 2, 24, 48} {
			v, err := q.Take(t.Context())
			if err != nil || v != want || time.Since(start) != time.Duration(want)*time.Hour {
				t.Errorf("took %d, %v after %v; want %d", v, err, time.Since(start), want)
			}
		}
	})
}

// TestDelayQueueKeepsDuesAsGiven puts elements a nanosecond apart, latest first,
// and two with one due: all are due at once, and come out in order.
func TestDelayQueueKeepsDuesAsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(123 * time.Nanosecond) // off the whole microsecond
		q, now := timer.NewDelayQueue[int](), time.Now()
		for i := 9; i > 0; i-- {
			q.Put(now.Add(time.Duration(i-9)*time.Nanosecond), i)
		}
		q.Put(now, 10)
		for want := 1; want <= 10; want++ {
			if v, ok := q.Poll(); !ok || v != want {
				t.Errorf("polled %d, %t; want %d", v, ok, want)
			}
		}
	})
}

func TestDelayQueueNewHeadWakesTheTaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := timer.NewDelayQueue[string](), time.Now()
		q.Put(start.Add(time.Hour), "late")
		var wg sync.WaitGroup
		wg.Go(func() {
			if v, err := q.Take(t.Context()); v != "early" || err != nil || time.Since(start) != 3*time.Millisecond {
				t.Errorf("took %q, %v after %v", v, err, time.Since(start))
			}
		})
		synctest.Wait()
		q.Put(start.Add(3*time.Millisecond), "early")
		wg.Wait()
		if _, ok := q.Poll(); ok || q.Len() != 1 {
			t.Error("polled what is not due")
		}
	})
}

func TestDelayQueueServesTakersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := timer.NewDelayQueue[int](), time.Now()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if v, err := q.Take(t.Context()); v != i || err != nil {
					t.Errorf("taker %d took %d, %v", i, v, err)
				}
			})
			synctest.Wait()
		}
		for i := range 5 {
			q.Put(start.Add(time.Duration(i)*time.Minute), i)
		}
		wg.Wait()
	})
}

func TestDelayQueueTakerWhoLeavesPassesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := timer.NewDelayQueue[int](), time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := q.Take(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("took in vain: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := q.Take(t.Context()); v != 7 || err != nil || time.Since(start) != time.Minute {
				t.Errorf("took %d, %v after %v", v, err, time.Since(start))
			}
		})
		synctest.Wait()
		q.Put(start.Add(time.Minute), 7)
		wg.Wait()
	})
}

func TestDelayQueueRemoveAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := timer.NewDelayQueue[int](), time.Now()
		a, b := q.Put(start.Add(time.Second), 1), q.Put(start.Add(time.Hour), 2)
		if v, ok := q.Remove(a); !ok || v != 1 {
			t.Errorf("removed %d, %t", v, ok)
		}
		if _, ok := q.Remove(a); ok || q.Reset(a, start) {
			t.Error("a stale handle is alive")
		}
		if !q.Reset(b, start.Add(time.Minute)) {
			t.Error("reset failed")
		}
		if v, err := q.Take(t.Context()); v != 2 || err != nil || time.Since(start) != time.Minute {
			t.Errorf("took %d, %v after %v", v, err, time.Since(start))
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Take(done); !errors.Is(err, context.Canceled) {
			t.Errorf("took with a cancelled context: %v", err)
		}
	})
}

func TestDelayQueueManyTakers(t *testing.T) {
	const n = 4000
	q := timer.NewDelayQueue[int]()
	var wg sync.WaitGroup
	taken := make(chan int, n)
	for range 4 {
		wg.Go(func() {
			for range n / 4 {
				v, err := q.Take(t.Context())
				if err != nil {
					t.Error(err)
				}
				taken <- v
			}
		})
		wg.Go(func() {
			for i := range n / 4 {
				q.Put(time.Now().Add(time.Duration(i%7)*100*time.Microsecond), i)
			}
		})
	}
	wg.Wait()
	if len(taken) != n || q.Len() != 0 {
		t.Errorf("took %d, left %d", len(taken), q.Len())
	}
}

func TestDelayQueueFarDues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, year := timer.NewDelayQueue[int](), 365*24*time.Hour
		q.Put(time.Now().Add(140*year), 140)
		q.Put(time.Now().Add(100*year), 100)
		q.Put(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 9999)
		q.Put(time.Time{}, 1)
		if v, ok := q.Poll(); !ok || v != 1 {
			t.Errorf("took %d, %t; want what was due in the year 1", v, ok)
		}
		if v, ok := q.Poll(); ok {
			t.Errorf("took %d early", v)
		}
		for _, want := range []int{100, 140} {
			time.Sleep(100 * year)
			if v, ok := q.Poll(); !ok || v != want {
				t.Errorf("took %d, %t; want %d", v, ok, want)
			}
		}
		if v, ok := q.Poll(); ok || q.Len() != 1 {
			t.Errorf("took %d, due beyond what the queue reaches", v)
		}
	})
}
