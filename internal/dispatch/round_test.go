package dispatch

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// unasked is an engine that must not be asked.
type unasked struct{ engine.Engine }

func (unasked) Watch(func(string)) func()         { return func() {} }
func (unasked) Capabilities() engine.Capabilities { return engine.Capabilities{} }

// Whatever woke the dispatcher, as when the process was suspended past both, the end of
// a wait is noticed before anything is leased for it.
func TestRoundLeavesOutWhoseWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
		d.running = true // nobody is to run it
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sub := func(ctx context.Context, wait time.Duration) *Subscription {
			s := &Subscription{Queues: []string{"q"}, Once: true, Ctx: ctx, Until: time.Now().Add(wait), Asked: make(chan struct{}),
				Room: func(_ string, taken int) (int, bool) { return 1 - taken, taken >= 1 }}
			d.Subscribe(s)
			return s
		}
		sub(t.Context(), time.Second)
		sub(ctx, time.Hour)
		b := d.queues["q"]
		plan := func() (n int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ask(b)
			if c := d.plan(time.Now()); c != nil {
				n = c.wants[0].Max
				for _, sh := range c.shares[0] {
					sh.sub.taken, sh.sub.calls = 0, 0
				}
				d.place(b, false)
			}
			d.see()
			return n
		}
		if n := plan(); n != 2 {
			t.Errorf("at first it asks for %d, want 2", n)
		}
		time.Sleep(time.Second)
		if n := plan(); n != 1 {
			t.Errorf("when one wait is over it asks for %d, want 1", n)
		}
		cancel()
		if n := plan(); n != 0 {
			t.Errorf("when the other's context is over too it asks for %d", n)
		}
	})
}

// A wait that is over before the first answer is asked for all the same.
func TestRoundAsksForAllOnce(t *testing.T) {
	s := &Subscription{Queues: []string{"q"}, Once: true, Ctx: t.Context()}
	if s.over(time.Now()) {
		t.Error("it is over before it was asked for")
	}
	if s.seen = 1; !s.over(time.Now()) {
		t.Error("it is not over")
	}
}
