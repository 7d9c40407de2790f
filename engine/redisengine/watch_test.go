package redisengine

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestWatchIsTold of everything that makes something happen sooner in a queue than a
// grant has said, be it by the same engine or by another. No answer is relied on
// longer than Recheck, but here it is the hint that has to come.
func TestWatchIsTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	soon, later := engine.When{In: 30 * time.Minute}, engine.When{In: 12 * time.Hour}
	waits := func(t *testing.T, e *Engine) {
		m := plain("q", "k")
		m.Due = later
		push(t, e, m)
	}
	leased := func(t *testing.T, e *Engine) engine.Lease {
		push(t, e, plain("q", "k"))
		return lease1(t, e, "q")
	}
	settles := func(t *testing.T, e *Engine, l engine.Lease, do engine.Action) {
		if r := settle1(t, e, engine.Settlement{Token: l.Token, Do: do, When: &soon, TTR: time.Minute}); r.Err != nil {
			t.Error(r.Err)
		}
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, e *Engine) (then func(t *testing.T, e *Engine))
	}{
		"push": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			waits(t, e)
			return func(t *testing.T, e *Engine) {
				m := plain("q", "other")
				m.Due = soon
				push(t, e, m)
			}
		}},
		"rare push": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			waits(t, e)
			return func(t *testing.T, e *Engine) {
				m := plain("q", "other")
				m.Due, m.Priority = soon, new(uint32(1))
				push(t, e, m)
			}
		}},
		"rearm": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			waits(t, e)
			return func(t *testing.T, e *Engine) {
				m := plain("q", "k")
				m.Due, m.OnConflict = soon, engine.Rearm
				push(t, e, m)
			}
		}},
		"reschedule": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			waits(t, e)
			return func(t *testing.T, e *Engine) {
				if _, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "k"}, soon); err != nil {
					t.Error(err)
				}
			}
		}},
		"release": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			l := leased(t, e)
			return func(t *testing.T, e *Engine) { settles(t, e, l, engine.Release) }
		}},
		"retry": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			l := leased(t, e)
			return func(t *testing.T, e *Engine) { settles(t, e, l, engine.Retry) }
		}},
		"snooze": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			l := leased(t, e)
			return func(t *testing.T, e *Engine) { settles(t, e, l, engine.Snooze) }
		}},
		"extend": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			l := leased(t, e)
			return func(t *testing.T, e *Engine) { settles(t, e, l, engine.Extend) }
		}},
		"redrive": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			settles(t, e, leased(t, e), engine.Bury)
			return func(t *testing.T, e *Engine) {
				if n, err := e.Redrive(t.Context(), "q", nil, 0); err != nil || n.Redriven != 1 {
					t.Error(n, err)
				}
			}
		}},
		"resume": {func(t *testing.T, e *Engine) func(*testing.T, *Engine) {
			push(t, e, plain("q", "k"))
			if err := e.Pause(t.Context(), "q", 0); err != nil {
				t.Fatal(err)
			}
			return func(t *testing.T, e *Engine) {
				if err := e.Resume(t.Context(), "q"); err != nil {
					t.Error(err)
				}
			}
		}},
	} {
		for _, who := range []string{"itself", "another"} {
			t.Run(name+" by "+who, func(t *testing.T) {
				t.Parallel()
				prefix := "prefix=" + freshPrefix()
				e := openStore(t, s.URL(), prefix, "shards=2")
				by := e
				if who == "another" {
					by = openStore(t, s.URL(), prefix)
				}
				then := c.before(t, by)
				hints := make(chan string, 100)
				e.queue("q") // the subscription begins with a hint at all queues that are known
				stop := e.Watch(func(queue string) { hints <- queue })
				defer stop()
				<-hints
				settled(t, e)
				for len(hints) > 0 {
					<-hints
				}
				then(t, by)
				select {
				case queue := <-hints:
					if queue != "q" {
						t.Errorf("%q is hinted at", queue)
					}
				case <-time.After(longWait):
					t.Error("nothing is hinted at")
				}
			})
		}
	}
}

// settled leases nothing until a grant says when something happens that lies ahead, or
// that nothing is known.
func settled(t *testing.T, e *Engine) {
	t.Helper()
	eventually(t, "a grant that can be relied on", func() bool {
		grant, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
		if err != nil || len(grant.Queues[0].Messages) > 0 {
			t.Fatalf("%+v, %v", grant, err)
		}
		next := grant.Queues[0].NextDue
		return next.IsZero() || next.Sub(grant.Now) > time.Second
	})
}

// Whoever looks out for queues hears of those that are new here.
func TestHintsTellOfNewQueues(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	prefix := "prefix=" + freshPrefix()
	e, by := openStore(t, s.URL(), prefix), openStore(t, s.URL(), prefix)
	hints := make(chan string, 100)
	defer e.Watch(func(queue string) { hints <- queue })()
	e.queue("q")
	<-hints // the subscription has begun
	push(t, by, plain("new", "k"))
	for {
		select {
		case queue := <-hints:
			if queue == "new" {
				return
			}
		case <-time.After(longWait):
			t.Fatal("nothing is hinted at")
		}
	}
}
