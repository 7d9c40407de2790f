package memengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestHints(t *testing.T) {
	e, c := newEngine(t)
	hints := 0
	stop := e.Watch(func(queue string) {
		if queue != "q" {
			t.Errorf("hint for %q", queue)
		}
		hints++
	})
	expect := func(step string, want bool) {
		t.Helper()
		if (hints > 0) != want {
			t.Errorf("%s: %d hints, want some: %v", step, hints, want)
		}
		hints = 0
	}

	push(t, e, msg("q", "far", time.Hour))
	expect("push, nothing told", true)
	lease(t, e, "q", 1)
	hints = 0
	push(t, e, msg("q", "farther", 2*time.Hour))
	expect("push of a later one", false)
	push(t, e, msg("q", "near", time.Minute))
	expect("push of an earlier one", true)
	lease(t, e, "q", 1)
	hints = 0
	if _, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "far"}, engine.When{In: time.Second}); err != nil {
		t.Fatal(err)
	}
	expect("reschedule to earlier", true)
	c.Advance(time.Second)
	g := lease(t, e, "q", 1)
	hints = 0
	settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Release})
	expect("release", true)
	g = lease(t, e, "q", 1)
	hints = 0
	settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Retry, When: &engine.When{In: time.Millisecond}})
	expect("retry", true)
	if err := e.Pause(t.Context(), "q", 0); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Second)
	lease(t, e, "q", 1)
	hints = 0
	push(t, e, msg("q", "paused", 0))
	expect("push while paused", false)
	if err := e.Pause(t.Context(), "q", time.Minute); err != nil {
		t.Fatal(err)
	}
	expect("pause that ends after one that does not", true)
	if err := e.Resume(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	expect("resume", true)

	lease(t, e, "q", 9)
	stop()
	hints = 0
	push(t, e, msg("q", "after", 0))
	expect("push after stop", false)
}

// A claimed message has nobody who waits for its deadline unless a hint says so.
func TestClaimHints(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("q", "a", 0))
	g := lease(t, e, "q", 1)
	settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Ack})
	lease(t, e, "q", 1)
	push(t, e, msg("q", "b", 0))
	var queues []string
	defer e.Watch(func(queue string) { queues = append(queues, queue) })()
	if _, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "b"}, engine.Want{TTR: time.Second}); err != nil {
		t.Fatal(err)
	}
	if len(queues) != 1 {
		t.Fatalf("hints %v, want one", queues)
	}
}
