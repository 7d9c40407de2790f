package memengine

import (
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// newEngine returns an engine whose clock stands until the test moves it.
func newEngine(t *testing.T) (*Engine, *clock) {
	t.Helper()
	c := newClock()
	e := New(&Config{Now: c.now})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return e, c
}

// msg is a message to push, due in d.
func msg(queue, key string, d time.Duration) engine.Message {
	return engine.Message{
		Queue: queue, Key: key, Due: engine.When{In: d},
		Content: engine.Content{Body: []byte(key)},
		Policy:  engine.Policy{Priority: 1024, MaxAttempts: 3, TTR: time.Minute},
	}
}

func push(t *testing.T, e *Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	results, err := e.Push(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil {
			t.Fatalf("push %d: %v", i, r.Err)
		}
	}
	return results
}

func lease(t *testing.T, e *Engine, queue string, n int) engine.Granted {
	t.Helper()
	grant, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: n}})
	if err != nil {
		t.Fatal(err)
	}
	return grant.Queues[0]
}

func settle(t *testing.T, e *Engine, s engine.Settlement) engine.Settled {
	t.Helper()
	settled, err := e.Settle(t.Context(), []engine.Settlement{s})
	if err != nil {
		t.Fatal(err)
	}
	return settled[0]
}

func TestClockBackwards(t *testing.T) {
	for _, back := range []time.Duration{500 * time.Millisecond, time.Hour} {
		e, c := newEngine(t)
		push(t, e, msg("q", "old", time.Second), msg("q", "far", 2*time.Hour))
		c.add(time.Second)
		lease(t, e, "q", 1) // moves the wheel
		c.add(-back)
		push(t, e, msg("q", "new", 10*time.Second))
		if g := lease(t, e, "q", 9); len(g.Messages) != 0 {
			t.Fatalf("back %v: leased %q early", back, g.Messages[0].Key)
		}
		c.add(10*time.Second - time.Millisecond)
		if g := lease(t, e, "q", 9); len(g.Messages) != 0 {
			t.Fatalf("back %v: leased %q early", back, g.Messages[0].Key)
		}
		c.add(time.Millisecond)
		if g := lease(t, e, "q", 9); len(g.Messages) != 1 || g.Messages[0].Key != "new" {
			t.Fatalf("back %v: leased %v, want new", back, g.Messages)
		}
		c.add(4 * time.Hour)
		if g := lease(t, e, "q", 9); len(g.Messages) != 3 {
			t.Fatalf("back %v: leased %d, want all three again", back, len(g.Messages))
		}
	}
}
