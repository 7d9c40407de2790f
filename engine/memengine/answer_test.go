package memengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// The bodies of an answer share memory, but who appends to one spoils no other.
func TestBodiesOfAnAnswerAreApart(t *testing.T) {
	e, c := newEngine(t)
	const n = 100
	for i := range n {
		m := msg("q", fmt.Sprintf("key%d", i), time.Second)
		m.Body = fmt.Appendf(nil, "body%d", i)
		push(t, e, m)
	}
	c.Advance(time.Second)
	leases := lease(t, e, "q", n).Messages
	for i := range leases {
		leases[i].Body = append(leases[i].Body, "and more"...)
		leases[i].Body[0] = 'B'
	}
	for i, l := range leases {
		if want := fmt.Sprintf("Body%dand more", i); string(l.Body) != want || l.Key != fmt.Sprintf("key%d", i) {
			t.Fatalf("%q has %q, want %q", l.Key, l.Body, want)
		}
		got, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID})
		if want := fmt.Sprintf("body%d", i); err != nil || string(got.Body) != want || got.Key != l.Key {
			t.Fatalf("kept is %q with %q, want %q; %v", got.Key, got.Body, want, err)
		}
	}
}

// Turns that are lost in the middle of the order do not pile up.
func TestTurnsAreTidied(t *testing.T) {
	e, _ := newEngine(t)
	push(t, e, msg("q", "first", 0))
	for range 10_000 {
		push(t, e, msg("q", "k", 0))
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "k"}}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	if n := len(e.queues["q"].ready); n > 2000 {
		t.Errorf("%d turns for one message", n)
	}
	if g := lease(t, e, "q", 9); len(g.Messages) != 1 || g.Messages[0].Key != "first" {
		t.Errorf("%+v", g.Messages)
	}
}
