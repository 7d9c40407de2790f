package memengine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// endKeys has a queue list what it cancels: n messages with each of some keys in turn.
func endKeys(t *testing.T, e *Engine, n, keys int) time.Duration {
	t.Helper()
	began := time.Now()
	for i := range n {
		m := msg("q", fmt.Sprint(i%keys), time.Minute)
		push(t, e, m)
		cancel(t, e, engine.Ref{Queue: "q", Key: m.Key})
	}
	return time.Since(began)
}

// A key that ends again and again costs no more than keys that each end once.
func TestManyEndsOfOneKey(t *testing.T) {
	const n = 30_000
	var took [2]time.Duration
	for i, keys := range []int{2 * n, 1} {
		e, _ := newEngine(t)
		e.history = engine.History{Keep: time.Hour, Max: n}
		took[i] = endKeys(t, e, 2*n, keys)
		if q, err := e.Queue(t.Context(), "q"); err != nil || q.History != n {
			t.Errorf("%+v, %v", q, err)
		}
	}
	if took[1] > 5*took[0]+time.Second/10 {
		t.Errorf("one key took %s, many took %s", took[1], took[0])
	}
}

// A page takes little memory besides what it shows, though all messages ended in one minute.
func TestPageOfOneMinute(t *testing.T) {
	const n = 50_000
	e, c := newEngine(t)
	e.history.Keep = time.Hour
	for range 5 {
		endKeys(t, e, n/5, n)
		c.Advance(time.Second)
	}
	for _, newest := range []bool{false, true} {
		q := engine.ListQuery{Queue: "q", State: engine.Finished, Limit: 10, Newest: newest}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		page, err := e.List(t.Context(), q)
		runtime.ReadMemStats(&after)
		if err != nil || len(page.Messages) != q.Limit {
			t.Fatalf("%+v, %v", page, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 100_000 {
			t.Errorf("newest %v: a page of %d took %d bytes", newest, q.Limit, took)
		}
		seen := len(page.Messages)
		for q.Limit = 1000; page.Next != ""; seen += len(page.Messages) {
			q.After = page.Next
			if page, err = e.List(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		if seen != n {
			t.Errorf("newest %v: %d messages are on the pages", newest, seen)
		}
	}
}
