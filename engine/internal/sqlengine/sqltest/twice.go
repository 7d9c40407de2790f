package sqltest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// failing counts the transactions of leases, and fails as many as it is told to.
type failing struct {
	sqlengine.Store
	leases, fail atomic.Int64
}

func (s *failing) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	if op == "lease" {
		s.leases.Add(1)
		if s.fail.Add(-1) >= 0 {
			return engine.ErrUnavailable
		}
	}
	return s.Store.In(ctx, op, do)
}

// A lease of many, which two transactions make, takes what comes first, in order. When one
// of them fails it has what the other took, and asks for more; when both do it fails. What
// has a rank goes first.
func leaseOfMany(t *testing.T, bed Bed) {
	const many = 300
	s := new(failing)
	e := bed.Open(t, func(to sqlengine.Store) sqlengine.Store {
		s.Store = to
		return s
	})
	msgs := make([]engine.Message, 1+2*many)
	for i := range msgs {
		msgs[i].Queue = "q"
	}
	// It is one transaction where the database's time is not known well, or now and then to
	// look anew. round leases many in two, of which so many fail.
	round := func(fail int64) (engine.Grant, []engine.PushResult, error) {
		for range 100 {
			pushed := push(t, e, msgs...)
			if first := lease(t, e, 1); first[0].ID != pushed[0].ID {
				t.Fatalf("leased %d, not %d", first[0].ID, pushed[0].ID)
			}
			before := s.leases.Load()
			s.fail.Store(fail)
			g, err := e.Lease(patience(t), []engine.Want{{Queue: "q", Max: many, TTR: time.Minute, Remote: true}})
			s.fail.Store(0)
			if s.leases.Load()-before == 2 {
				return g, pushed[1:], err
			}
			_, err = e.Purge(patience(t), "q", 0)
			ok(t, err)
		}
		t.Fatal("no lease of many was made by two transactions")
		return engine.Grant{}, nil, nil
	}
	g, pushed, err := round(0)
	ok(t, err, g.Queues[0].Err)
	got := g.Queues[0].Messages
	if len(got) != many || !g.Queues[0].More {
		t.Fatalf("%d of %d leased, more: %t", len(got), many, g.Queues[0].More)
	}
	for i := range got {
		if got[i].ID != pushed[i].ID {
			t.Fatalf("%d is the %dth, not %d", got[i].ID, i, pushed[i].ID)
		}
	}
	for i, l := range append(got, lease(t, e, many)...) {
		if l.ID != pushed[i].ID {
			t.Fatalf("%d is the %dth, not %d", l.ID, i, pushed[i].ID)
		}
	}
	if rest := lease(t, e, many); len(rest) > 0 {
		t.Fatalf("%d are left", len(rest))
	}
	g, _, err = round(1)
	ok(t, err, g.Queues[0].Err)
	if n := len(g.Queues[0].Messages); n != many/2 || !g.Queues[0].More {
		t.Errorf("%d leased by one of two, more: %t", n, g.Queues[0].More)
	}
	_, err = e.Purge(patience(t), "q", 0)
	ok(t, err)
	if _, _, err = round(2); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("a lease of which both fail: %v", err)
	}
	other := bed.Open(t, nil)
	for n := int64(0); n < 3; { // two that meet it, and one
		push(t, e, msgs...)
		lease(t, e, 1)
		push(t, other, engine.Message{Queue: "q", Terms: engine.Terms{Priority: new(uint32)}})
		before := s.leases.Load()
		if got := lease(t, e, many); len(got) != many || got[0].Priority != 0 {
			t.Fatalf("%d leased, the first of priority %d", len(got), got[0].Priority)
		}
		n = s.leases.Load() - before
		_, err = e.Purge(patience(t), "q", 0)
		ok(t, err)
	}
}
