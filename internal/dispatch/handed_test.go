package dispatch

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// What a worker's functions call back finds the dispatcher unlocked.
func TestFunctionsMayCallTheDispatcher(t *testing.T) {
	d := unrun()
	var leases, ended, failed int
	s := ofWorker(10, "q")
	s.Deliver = func(ls []engine.Lease, _, _ time.Time) { d.hint("q"); leases += len(ls) }
	s.Noted = func(_ string, expired, died int) { d.hint("q"); ended += expired + died }
	s.Fail = func(error) { d.hint("q"); failed++ }
	leave := d.Subscribe(s)
	d.conclude(d.planned(), engine.Grant{Queues: []engine.Granted{{Messages: make([]engine.Lease, 3), Expired: 1, Died: 2}}}, nil)
	if leases != 3 || ended != 3 || s.onTheWay != 0 || s.callbacks != 0 {
		t.Errorf("%d leases came, %d were told; %d are on their way", leases, ended, s.onTheWay)
	}
	d.hint("q")
	d.conclude(d.planned(), engine.Grant{}, errors.New("no"))
	for range callsMax {
		d.calls = append(d.calls, &call{slow: true, ended: true})
	}
	d.hint("q")
	if d.planned() != nil {
		t.Error("it asks though all hangs")
	}
	d.tell(d.failed)
	d.calls = nil
	leave(0)
	d.Close()
	d.Subscribe(s)
	if failed != 3 {
		t.Errorf("%d failures were told", failed)
	}
}

// What a worker is being handed is on its way to it: it has no room for it twice, and has
// not left before.
func TestLeaveWaitsForDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := unrun()
		s, let := ofWorker(10, "q"), make(chan struct{})
		s.Deliver = func([]engine.Lease, time.Time, time.Time) { <-let }
		leave := d.Subscribe(s)
		c := d.planned()
		go d.conclude(c, engine.Grant{Queues: []engine.Granted{{Messages: make([]engine.Lease, 7), More: true}}}, nil)
		synctest.Wait()
		if c := d.planned(); c == nil || c.wants[0].Max != 3 {
			t.Errorf("%+v is asked beside what is on its way", c)
		}
		left := false
		go func() {
			leave(time.Second)
			left = true
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if left {
			t.Error("it left amid a delivery")
		}
		close(let)
		synctest.Wait()
		if !left {
			t.Error("it has not left")
		}
	})
}

// Whatever fails and works again, it is known of each subscription how many of its queues
// could not be asked.
func TestFailingQueuesAreCounted(t *testing.T) {
	d := unrun()
	queues := numbered(20)
	var subs []*Standing
	pick := func() (some []string) {
		for _, i := range rand.Perm(len(queues))[:1+rand.N(len(queues))] {
			some = append(some, queues[i])
		}
		return some
	}
	for range 2000 {
		switch {
		case len(subs) < 5 || rand.N(4) == 0:
			subs = append(subs, d.leases(t.Context(), time.Hour, 1000, pick()...))
		case len(subs) > 15 || rand.N(3) == 0:
			i := rand.N(len(subs))
			subs[i].end(t.Context(), time.Nanosecond)
			subs[i].Leave()
			subs = append(subs[:i], subs[i+1:]...)
		}
		d.hint(strconv.Itoa(rand.N(len(queues))))
		if c := d.planned(); c != nil {
			g := nothing(len(c.wants))
			for i := range g.Queues {
				if rand.N(2) == 0 {
					g.Queues[i].Err = errors.New("no")
				}
			}
			d.conclude(c, g, nil)
		}
		for _, s := range subs {
			failing := 0
			for _, q := range s.s.Queues {
				if d.queues[q].err != nil {
					failing++
				}
			}
			if s.s.failing != failing {
				t.Fatalf("%d of its queues are counted as failing, not %d", s.s.failing, failing)
			}
		}
	}
}
