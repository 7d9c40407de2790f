package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Rounds pass by what nobody has taken his turn for in a while, until somebody does, or
// another comes.
func TestRoundPassesByWhoRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := unrun()
		st, err := d.Stand(numbered(1000))
		if err != nil {
			t.Fatal(err)
		}
		d.Subscribe(ofWorker(50, "other"))
		plan := func() (wants, ready int) {
			if c := d.planned(); c != nil {
				wants = len(c.wants)
				d.conclude(c, nothing(wants), nil)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
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
		d.Subscribe(ofWorker(50, "7"))
		if wants, ready := plan(); wants != 1 || ready != 0 {
			t.Errorf("%d asked, %d ready when another waits for one of its queues", wants, ready)
		}
		o := engine.Wait{Max: 50, For: time.Hour}
		st.begin(t.Context(), &o, newAnswer(&o))
		if wants, ready := plan(); wants != 50 || ready != 1000-1-50 {
			t.Errorf("%d asked, %d ready in its turn", wants, ready)
		}
		st.end(context.Background(), 0)
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
		d := unrun()
		st, err := d.Stand([]string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		d.Subscribe(ofWorker(0, "other"))
		o := engine.Wait{Max: 1, For: time.Hour}
		begin := func() { st.begin(t.Context(), &o, newAnswer(&o)) }
		begin()
		time.Sleep(parkAfter)
		c := d.planned()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			st.end(context.Background(), 0)
		}()
		synctest.Wait()
		time.Sleep(parkAfter / 2)
		d.planned()
		time.Sleep(parkAfter)
		d.planned()
		d.conclude(c, nothing(1), nil)
		<-ended
		begin()
		if c := d.planned(); c == nil || c.wants[0].Queue != "b" {
			t.Errorf("it asks for %+v, want b", c)
		}
	})
}

// A closed dispatcher takes nobody in, and fails the turn of one that stands.
func TestStandAndTurnAfterClose(t *testing.T) {
	d := New(unasked{}, engine.Capabilities{}, slog.New(slog.DiscardHandler), 10)
	st, err := d.Stand([]string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if _, err := d.Stand([]string{"a"}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("it stands: %v", err)
	}
	if _, err := st.Lease(t.Context(), engine.Wait{Max: 1, For: time.Hour}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a turn ends with %v", err)
	}
	st.Leave()
	if d.namedQueues != 0 {
		t.Errorf("%d queues are counted of nobody", d.namedQueues)
	}
}
