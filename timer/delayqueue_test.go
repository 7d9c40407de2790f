package timer_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/timer"
)

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
