package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Rounds pass by what nobody has taken his turn for in a while, until somebody does, or
// another comes.
func TestRoundPassesByWhoRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
		d.running = true // nobody is to run it
		queues := make([]string, 1000)
		for i := range queues {
			queues[i] = strconv.Itoa(i)
		}
		room := func(_ string, taken int) (int, bool) { return 50 - taken, taken >= 50 }
		st := d.Stand(&Subscription{Queues: queues, Room: room})
		d.Subscribe(&Subscription{Queues: []string{"other"}, Room: room})
		plan := func() (wants, ready int) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if c := d.plan(time.Now()); c != nil {
				wants = len(c.wants)
				d.share(c, engine.Grant{Queues: make([]engine.Granted, wants)}, nil, time.Now())
			}
			for l := d.ready.first; l != nil; l = l.next {
				ready++
			}
			return wants, ready
		}
		hint := func() { d.hint("other") }
		if wants, ready := plan(); wants != 1 || ready != 1000 {
			t.Errorf("%d asked, %d ready while it is about to take its turn", wants, ready)
		}
		time.Sleep(parkAfter)
		hint()
		if wants, ready := plan(); wants != 1 || ready != 0 {
			t.Errorf("%d asked, %d ready when it has rested", wants, ready)
		}
		d.Subscribe(&Subscription{Queues: []string{"7"}, Room: room})
		if wants, ready := plan(); wants != 1 || ready != 0 {
			t.Errorf("%d asked, %d ready when another waits for one of its queues", wants, ready)
		}
		st.Begin(Demand{Ctx: context.Background(), Until: time.Now().Add(time.Hour)})
		if wants, ready := plan(); wants != 50 || ready != 1000-1-50 {
			t.Errorf("%d asked, %d ready in its turn", wants, ready)
		}
		st.End(context.Background(), 0)
		time.Sleep(parkAfter)
		hint()
		plan()
		st.Leave()
		if d.parked.first != nil || d.ready.first != nil || len(d.queues) != 2 || d.resting != 0 {
			t.Errorf("%d queues are left of one that left", len(d.queues))
		}
	})
}

// What rounds passed by while a turn took long to end is there for the next.
func TestTurnBeginsWithAllThatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
		d.running = true // nobody is to run it
		n := 1
		st := d.Stand(&Subscription{Queues: []string{"a", "b"}, Room: func(_ string, taken int) (int, bool) { return n - taken, taken >= n }})
		d.Subscribe(&Subscription{Queues: []string{"other"}, Room: func(string, int) (int, bool) { return 0, false }})
		plan := func() *call {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.plan(time.Now())
		}
		begin := func() { st.Begin(Demand{Ctx: context.Background(), Until: time.Now().Add(time.Hour)}) }
		begin()
		time.Sleep(parkAfter)
		c := plan()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			st.End(context.Background(), 0)
		}()
		synctest.Wait()
		time.Sleep(parkAfter / 2)
		plan()
		time.Sleep(parkAfter)
		plan()
		d.conclude(c, engine.Grant{Queues: make([]engine.Granted, 1)}, nil)
		<-ended
		begin()
		if c := plan(); c == nil || c.wants[0].Queue != "b" {
			t.Errorf("it asks for %+v, want b", c)
		}
	})
}

// Who stands where all is closed has nothing begun for him.
func TestStandAfterClose(t *testing.T) {
	d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler))
	d.Close()
	var failed error
	st := d.Stand(&Subscription{Queues: []string{"a"}, Fail: func(err error) { failed = err }})
	if d.running {
		t.Error("the dispatcher runs")
	}
	st.Begin(Demand{Ctx: context.Background()})
	if !errors.Is(failed, engine.ErrClosed) {
		t.Errorf("a turn begins with %v", failed)
	}
	st.End(context.Background(), 0)
	st.Leave()
}
