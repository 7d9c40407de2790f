package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// named is an engine that knows names, and hears what is released.
type named struct {
	unasked
	released chan []engine.Settlement
}

func (named) Capabilities() engine.Capabilities {
	var caps engine.Capabilities
	caps.Workers = true
	return caps
}

func (e named) Settle(_ context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	e.released <- s
	return make([]engine.Settled, len(s)), nil
}

// crowd is a dispatcher for which n waiting leases of a queue have names, two the same one.
func crowd(t *testing.T, e named, n, most int) (*Dispatcher, []*Standing) {
	d := New(e, e.Capabilities(), slog.New(slog.DiscardHandler), n)
	d.running = true
	all := make([]*Standing, n)
	for i := range all {
		st, err := d.Stand([]string{"q"})
		if err != nil {
			t.Fatal(err)
		}
		o := engine.Wait{Max: most, For: time.Hour, Worker: fmt.Sprint("worker ", i/2)}
		st.begin(t.Context(), &o, newAnswer(&o))
		all[i] = st
	}
	return d, all
}

// granted answers the wants of a call in full.
func granted(c *call) engine.Grant {
	g := engine.Grant{Queues: make([]engine.Granted, len(c.wants))}
	for n := range c.wants {
		w := &c.wants[n]
		for i := range w.Max {
			l := engine.Lease{Token: fmt.Sprint(n, " ", i), Info: engine.Info{Queue: w.Queue, Worker: w.TakerOf(i).Worker}}
			g.Queues[n].Messages = append(g.Queues[n].Messages, l)
		}
	}
	return g
}

// However many names those have who wait for a queue, a call has one want for them, and each
// gets as much as it asked for, under its name. So it does if the engine lacks some leases or
// has them in another order.
func TestEachWorkerGetsWhatHasItsName(t *testing.T) {
	for name, spoil := range map[string]func([]engine.Lease) []engine.Lease{
		"in order":     func(ls []engine.Lease) []engine.Lease { return ls },
		"some missing": func(ls []engine.Lease) []engine.Lease { return append(ls[2:5:5], ls[9:]...) },
		"out of order": func(ls []engine.Lease) []engine.Lease {
			ls[0], ls[7], ls[20], ls[3] = ls[7], ls[20], ls[3], ls[0]
			return ls
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, all := crowd(t, named{}, 10, 4)
			c := d.planned()
			if len(c.wants) != 1 || c.wants[0].Max != 40 || len(c.wants[0].Takers) != 5 {
				t.Fatalf("it asks for %+v", c.wants)
			}
			g := granted(c)
			g.Queues[0].Messages = spoil(g.Queues[0].Messages)
			total := len(g.Queues[0].Messages)
			d.conclude(c, g, nil)
			for _, st := range all {
				got := st.s.answer.Messages
				total -= len(got)
				if len(got) > 4 {
					t.Errorf("%q got %d", st.s.Worker, len(got))
				}
				for _, l := range got {
					if l.Worker != st.s.Worker {
						t.Errorf("%q got a lease of %q", st.s.Worker, l.Worker)
					}
				}
			}
			if total != 0 {
				t.Errorf("%d leases are lost", total)
			}
		})
	}
}

// What a worker that has left was given goes to others of its name, and else back.
func TestLeasesOfAWorkerThatHasLeft(t *testing.T) {
	e := named{released: make(chan []engine.Settlement, 1)}
	d, all := crowd(t, e, 4, 2)
	c := d.planned()
	for _, left := range []int{0, 2, 3} {
		all[left].s.leaving, all[left].s.gone = true, true
	}
	g := granted(c)
	g.Queues[0].Messages = append(g.Queues[0].Messages[:2:2], g.Queues[0].Messages[4:]...) // none for all[1]
	d.conclude(c, g, nil)
	if got := all[1].s.answer.Messages; len(got) != 2 || got[0].Token != "0 0" {
		t.Errorf("the other of that name got %+v", got)
	}
	d.tasks.Wait()
	if len(e.released) == 0 {
		t.Fatal("nothing is released")
	}
	if back := <-e.released; len(back) != 4 || back[0].Token != "0 4" {
		t.Errorf("released are %+v", back)
	}
}

// An engine without names is not asked with them, and its leases are anybody's.
func TestLeasesWithoutNames(t *testing.T) {
	d, all := crowd(t, named{}, 4, 2)
	d.caps.Workers = false
	c := d.planned()
	if w := c.wants[0]; w.Worker != "" || w.Takers != nil {
		t.Errorf("it asks for %+v", w)
	}
	all[0].s.leaving, all[0].s.gone = true, true
	g := granted(c)
	g.Queues[0].Messages = g.Queues[0].Messages[:2]
	d.conclude(c, g, nil)
	if got := all[1].s.answer.Messages; len(got) != 2 {
		t.Errorf("the next got %d", len(got))
	}
}
