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

// unrun is a dispatcher that nothing runs.
func unrun() *Dispatcher {
	var caps engine.Capabilities
	caps.GiveBack = true
	d := New(unasked{}, caps, slog.New(slog.DiscardHandler), 1_000_000)
	d.running = true
	return d
}

// numbered are the names of n queues.
func numbered(n int) []string {
	queues := make([]string, n)
	for i := range queues {
		queues[i] = strconv.Itoa(i)
	}
	return queues
}

// ofWorker is the subscription of a worker that has room for n messages.
func ofWorker(n int, queues ...string) *Subscription {
	s := &Subscription{Queues: queues, Room: new(Room)}
	s.Room.Free.Store(int64(n))
	s.Room.Ahead.Store(int64(n))
	return s
}

// leases begins a lease of n messages.
func (d *Dispatcher) leases(ctx context.Context, wait time.Duration, n int, queues ...string) *Standing {
	st, err := d.Stand(queues)
	if err != nil {
		panic(err)
	}
	o := engine.Wait{Max: n, For: wait}
	st.begin(ctx, &o, newAnswer(&o))
	return st
}

// planned is what is asked now.
func (d *Dispatcher) planned() *call {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.plan(time.Now())
	if c != nil {
		d.calls = append(d.calls, c)
	}
	return c
}

// nothing is an answer to n wants.
func nothing(n int) engine.Grant { return engine.Grant{Queues: make([]engine.Granted, n)} }

// Whatever woke the dispatcher, as when the process was suspended past both, the end of
// a wait is noticed before anything is leased for it.
func TestRoundLeavesOutWhoseWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := unrun()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d.leases(t.Context(), time.Second, 1, "q")
		d.leases(ctx, time.Hour, 1, "q")
		b := d.queues["q"]
		plan := func() (n int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.ask(b)
			if c := d.plan(time.Now()); c != nil {
				n = c.wants[0].Max
				for _, sh := range c.shares {
					sh.sub.onTheWay, sh.sub.calls = 0, 0
				}
				b.answered = d.rounds
				d.place(b, false)
			}
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
	d := unrun()
	s := d.leases(t.Context(), 0, 1, "q").s
	if d.over(s, time.Now()) {
		t.Error("it is over before it was asked for")
	}
	if d.conclude(d.planned(), nothing(1), nil); !d.over(s, time.Now()) {
		t.Error("it is not over")
	}
}

// Where thousands wait a call asks for few of them, and for more only while the engine
// says that there is more.
func TestRoundReachesFewOfThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := unrun()
		for range 5000 {
			d.leases(t.Context(), time.Hour, 1, "q")
		}
		for _, want := range []int{reachMin, 2 * reachMin, 4 * reachMin} {
			c := d.planned()
			if n := c.wants[0].Max; n != want || len(c.shares) != want {
				t.Errorf("it asks for %d of %d, want %d", n, len(c.shares), want)
			}
			d.conclude(c, engine.Grant{Queues: []engine.Granted{{More: true}}}, nil)
		}
		if n := d.queues["q"].spread; n > 0 {
			t.Errorf("%d that wait on one queue are walked over each time it is asked", n)
		}
	})
}

// A round ends when nobody has room for any queue.
func TestRoundEndsWhenAllAreFull(t *testing.T) {
	d := unrun()
	some, other := ofWorker(10, numbered(1000)...), ofWorker(1, "other")
	d.Subscribe(some)
	d.Subscribe(other)
	if c := d.planned(); len(c.wants) != 11 {
		t.Errorf("%d wants", len(c.wants))
	}
	if d.planned() != nil || some.fullRound != d.rounds || other.fullRound == d.rounds && d.queues["other"].ready {
		t.Error("it asks for more than there is room for")
	}
	if !d.wakeOnRoom.Load() {
		t.Error("freed room would not be heard")
	}
	some.Room.Ahead.Store(12)
	if c := d.planned(); len(c.wants) != 2 {
		t.Errorf("%d wants when there is room again", len(c.wants))
	}
}
