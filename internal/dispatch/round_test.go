package dispatch

import (
	"context"
	"log/slog"
	"strconv"
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
				for _, sh := range c.shares {
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

// Where thousands wait a call asks for few of them, and for more only while the engine
// says that there is more.
func TestRoundReachesFewOfThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
		d.running = true // nobody is to run it
		asked := 0
		for range 5000 {
			d.Subscribe(&Subscription{Queues: []string{"q"}, Once: true, Spread: true, Ctx: t.Context(), Until: time.Now().Add(time.Hour), Asked: make(chan struct{}),
				Room: func(_ string, taken int) (int, bool) { asked++; return 1 - taken, taken >= 1 }})
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, want := range []int{reachMin, 2 * reachMin, 4 * reachMin} {
			asked = 0
			c := d.plan(time.Now())
			if n := c.wants[0].Max; n != want || asked > want+1 {
				t.Errorf("it asks for %d after a look at %d, want %d", n, asked, want)
			}
			d.share(c, engine.Grant{Queues: []engine.Granted{{More: true}}}, nil, time.Now())
		}
		if n := d.queues["q"].spread; n > 0 {
			t.Errorf("%d that wait on one queue are walked over each time it is asked", n)
		}
	})
}

// A round does not ask again for room who has none for any queue.
func TestRoundLeavesAloneWhoIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
		d.running = true // nobody is to run it
		queues := make([]string, 1000)
		for i := range queues {
			queues[i] = strconv.Itoa(i)
		}
		looks := 0
		d.Subscribe(&Subscription{Queues: queues, Spread: true, Room: func(_ string, taken int) (int, bool) {
			looks++
			return 10 - taken, taken >= 10
		}})
		d.Subscribe(&Subscription{Queues: []string{"other"}, Room: func(_ string, taken int) (int, bool) { return 1 - taken, taken >= 1 }})
		d.mu.Lock()
		defer d.mu.Unlock()
		if c := d.plan(time.Now()); len(c.wants) != 11 || looks != 11 {
			t.Errorf("%d looks for %d wants", looks, len(c.wants))
		}
		if looks = 0; d.plan(time.Now()) != nil || looks != 1 {
			t.Errorf("%d looks when there is no room", looks)
		}
		if !d.short.Load() {
			t.Error("freed room would not be heard")
		}
	})
}
