package memengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// newEngine returns an engine whose clock stands until the test moves it.
func newEngine(t *testing.T) (*Engine, *enginetest.Clock) {
	t.Helper()
	c := enginetest.NewClock()
	e := New(&Config{Now: c.Now})
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
		Terms:   engine.Terms{MaxAttempts: 3, TTR: time.Minute},
	}
}

var (
	push   = enginetest.MustPush
	lease  = enginetest.MustLease
	settle = enginetest.MustSettle
)

func TestClockBackwards(t *testing.T) {
	for _, back := range []time.Duration{500 * time.Millisecond, time.Hour} {
		e, c := newEngine(t)
		push(t, e, msg("q", "old", time.Second), msg("q", "far", 2*time.Hour))
		c.Advance(time.Second)
		lease(t, e, "q", 1) // moves the wheel
		c.Advance(-back)
		push(t, e, msg("q", "new", 10*time.Second))
		if g := lease(t, e, "q", 9); len(g.Messages) != 0 {
			t.Fatalf("back %v: leased %q early", back, g.Messages[0].Key)
		}
		c.Advance(10*time.Second - time.Millisecond)
		if g := lease(t, e, "q", 9); len(g.Messages) != 0 {
			t.Fatalf("back %v: leased %q early", back, g.Messages[0].Key)
		}
		c.Advance(time.Millisecond)
		if g := lease(t, e, "q", 9); len(g.Messages) != 1 || g.Messages[0].Key != "new" {
			t.Fatalf("back %v: leased %v, want new", back, g.Messages)
		}
		c.Advance(4 * time.Hour)
		if g := lease(t, e, "q", 9); len(g.Messages) != 3 {
			t.Fatalf("back %v: leased %d, want all three again", back, len(g.Messages))
		}
	}
}
