package redisengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// suspend makes an engine count on as if its machine had stood still for so long,
// together with its clocks, as a virtual machine's do.
func suspend(e *Engine, d time.Duration) {
	back := func(c *clock) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ahead, c.shown = c.ahead-d, 0
	}
	back(&e.clock)
	for _, q := range e.queues {
		for _, s := range q.shards {
			back(&s.clock)
		}
	}
}

// TestFaultSuspended: a worker's machine comes back after ten minutes. Its clock does not
// count.
func TestFaultSuspended(t *testing.T) {
	t.Parallel()
	cluster := newClustered(t, "shards=6")
	cluster.spread("q")
	e := cluster.engine
	const away, in, slack = 10 * time.Minute, 30 * time.Minute, time.Minute
	for n := range 3 {
		var msgs, due []engine.Message
		for i := range 60 {
			m := plain("q", fmt.Sprint(n, ".", i))
			m.Due.In = in
			msgs, due = append(msgs, m), append(due, plain("q", fmt.Sprint(n, ".due.", i)))
		}
		suspend(e, away)
		objected := grown(t, e, "redis_retries", "clock") // all seems to come too late
		for _, r := range push(t, e, msgs...) {
			if left := time.Until(r.Due); left < in-slack || left > in+slack {
				t.Fatalf("what is due in %v is due in %v", in, left)
			}
		}
		objected()
		push(t, e, due...)
		suspend(e, away)
		var all []engine.Lease
		eventually(t, "all that is due", func() bool {
			all = append(all, leaseAll(t, e, "q")...)
			return len(all) >= len(due)
		})
		for _, l := range all {
			if left := time.Until(l.Deadline); left < time.Hour-slack || left > time.Hour+slack {
				t.Fatalf("a lease for an hour ends in %v", left)
			}
		}
		suspend(e, away)
		for _, l := range all {
			if s := settle1(t, e, engine.Settlement{Token: l.Token, Do: engine.Ack}); s.Err != nil {
				t.Fatal(s.Err)
			}
		}
		suspend(e, away)
		refs := make([]engine.Ref, len(msgs)) // of which some are cancelled in the quick way
		for i := range refs {
			refs[i] = engine.Ref{Queue: "q", Key: msgs[i].Key}
		}
		errs, err := e.Cancel(t.Context(), append(refs, engine.Ref{Queue: "q", Key: "none"}))
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range errs {
			if i == len(refs) {
				fails(t, err, engine.ErrNotFound)
			} else if err != nil {
				t.Errorf("a cancel: %v", err)
			}
		}
	}
}

// TestClockIsAskedAnew when this machine may have been suspended since.
func TestClockIsAskedAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := openStore(t, s.URL())
	push(t, e, plain("q", "k"))
	asked := runs(t, s, "time")
	if _, err := e.now(t.Context()); err != nil || runs(t, s, "time") != asked {
		t.Errorf("the server was asked without need, %v", err)
	}
	for name, change := range map[string]func(){
		"the clock is old":          func() { e.clock.seen = e.clock.seen.Add(-2 * clockSound) },
		"the machine was suspended": func() { e.clock.seen = e.clock.seen.Round(0).Add(-time.Hour) },
	} {
		e.clock.mu.Lock()
		e.clock.ahead, e.clock.shown = e.clock.ahead-time.Hour, 0
		change()
		e.clock.mu.Unlock()
		if now, err := e.now(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
			t.Errorf("%s: it is %v, %v", name, now, err)
		}
	}
	s.Kill()
	e.clock.mu.Lock()
	e.clock.seen = e.clock.seen.Add(-2 * clockSound)
	e.clock.mu.Unlock()
	if now, err := e.now(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("while nobody can be asked it is %v, %v", now, err)
	}
}
