package sqltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

func hour(key string) engine.Message {
	return engine.Message{Queue: "q", Key: key, Due: engine.When{In: time.Hour}}
}

// only expects that one item of a gathered call is told to try again, and no other fails.
func only(t *testing.T, held int, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if i == held && !errors.Is(err, engine.ErrBusy) || i != held && err != nil {
			t.Errorf("item %d: %v", i, err)
		}
	}
}

// gatheredPush pushes messages, each for another caller.
func gatheredPush(t *testing.T, e engine.Engine, msgs ...engine.Message) (errs []error) {
	t.Helper()
	r, err := e.Push(engine.Gathered(patience(t)), msgs)
	ok(t, err)
	for i := range r {
		errs = append(errs, r[i].Err)
	}
	return errs
}

// A push of a key that an open transaction holds does not delay pushes of other keys.
func pushes(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	push(t, e, hour("there"))
	tx := bed.Begin(t, e)
	push(t, tx, hour("new"))
	errs, err := tx.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "there"}})
	ok(t, err, errs[0])

	only(t, 1, gatheredPush(t, other, hour("a"), hour("new"), hour("b"))...)
	only(t, 0, gatheredPush(t, other, hour("new"), hour("c"))...)
	only(t, 2, gatheredPush(t, other, hour("d"), hour("e"), hour("there"))...)
	only(t, 0, gatheredPush(t, other, hour("there"))...)

	start := time.Now()
	for i := range 20 {
		only(t, 0, gatheredPush(t, other, hour("new"), hour(fmt.Sprint(i)))...)
	}
	t.Logf("20 pushes beside one that is known to wait took %v", time.Since(start))

	ok(t, tx.Commit())
	for key, want := range map[string]error{"new": engine.ErrExists, "there": nil} {
		got := engine.ErrBusy
		for errors.Is(got, engine.ErrBusy) && patience(t).Err() == nil {
			got = gatheredPush(t, other, hour(key))[0]
		}
		if !errors.Is(got, want) {
			t.Errorf("a push of the key %s: %v; want %v", key, got, want)
		}
	}
}

// slow is a store whose statements take longer than a brief transaction may.
type slow struct{ sqlengine.Store }

func (s slow) In(ctx context.Context, op string, do func(sqlengine.Tx) error) error {
	err := s.Store.In(ctx, op, func(tx sqlengine.Tx) error { return do(slowTx{tx}) })
	if errors.Is(err, errSlow) {
		return sqlengine.ErrBusy
	}
	return err
}

var errSlow = fmt.Errorf("slow: %w", sqlengine.ErrInternal)

type slowTx struct{ sqlengine.Tx }

func (s slowTx) Open(ctx context.Context, first sqlengine.First) (sqlengine.Opened, error) {
	if first.Timeout == sqlengine.BriefTimeout {
		return sqlengine.Opened{}, errSlow
	}
	return s.Tx.Open(ctx, first)
}

// A slow statement does not count as one that waits for a lock.
func pushesToSlow(t *testing.T, bed Bed) {
	e := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { return slow{s} })
	ok(t, gatheredPush(t, e, hour("a"))...)
	ok(t, gatheredPush(t, e, hour("b"), hour("c"))...)
	tx := bed.Begin(t, bed.Open(t, nil))
	push(t, tx, hour("new"))
	only(t, 1, gatheredPush(t, e, hour("d"), hour("new"), hour("e"))...)
	only(t, 0, gatheredPush(t, e, hour("new"), hour("f"))...)
}

// Nor does a call wait if the transaction pushes the key just after the call has looked for it.
func pushesBegunMeanwhile(t *testing.T, bed Bed) {
	b := new(between)
	e := bed.Open(t, func(s sqlengine.Store) sqlengine.Store {
		b.Store = s
		return b
	})
	tx := bed.Begin(t, bed.Open(t, nil))
	push(t, e, hour("there"))
	b.open = func() { push(t, tx, hour("new")) }
	only(t, 1, gatheredPush(t, e, hour("a"), hour("new"), hour("b"))...)
}

// However many keys a transaction holds, other pushes do not wait for it.
func pushesOfMany(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	tx := bed.Begin(t, e)
	var held, all []engine.Message
	for i := range 12 {
		held = append(held, hour(fmt.Sprint("held ", i)))
		all = append(all, held[i], hour(fmt.Sprint("free ", i)))
	}
	push(t, tx, held...)
	left := all
	for ctx := patience(t); len(left) > len(held); ok(t, ctx.Err()) {
		var again []engine.Message
		for i, err := range gatheredPush(t, other, left...) {
			if errors.Is(err, engine.ErrBusy) {
				again = append(again, left[i])
			} else if err != nil {
				t.Fatal(err)
			}
		}
		left = again
	}
	for _, m := range left {
		if m.Key[:4] != "held" {
			t.Errorf("%s waits", m.Key)
		}
	}
}

// A transaction locks a queue with max_pending as a whole, and no other queue.
func pushesToBounded(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	for _, e := range []engine.Whole{e, other} {
		_, err := e.Configure(t.Context(), "bounded", engine.Settings{MaxPending: 100}, "")
		ok(t, err)
	}
	tx := bed.Begin(t, e)
	push(t, tx, engine.Message{Queue: "bounded"})
	only(t, 1, gatheredPush(t, other, hour("a"), engine.Message{Queue: "bounded"}, hour("b"))...)
	only(t, 0, gatheredPush(t, other, engine.Message{Queue: "bounded"}, hour("c"))...)
}

func cancels(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	r := push(t, e, hour("a"), hour("held"), hour("b"), hour("c"))
	tx := bed.Begin(t, e)
	_, err := tx.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "held"}, engine.When{In: 2 * time.Hour})
	ok(t, err)
	gathered := func(refs ...engine.Ref) []error {
		t.Helper()
		errs, err := other.Cancel(engine.Gathered(patience(t)), refs)
		ok(t, err)
		return errs
	}
	only(t, 1, gathered(engine.Ref{Queue: "q", Key: "a"}, engine.Ref{Queue: "q", ID: r[1].ID}, engine.Ref{Queue: "q", ID: r[2].ID})...)
	only(t, 0, gathered(engine.Ref{Queue: "q", Key: "held"}, engine.Ref{Queue: "q", Key: "c"})...)
}

func settlements(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
	leases := lease(t, e, 3)
	tx := bed.Begin(t, e)
	settled, err := tx.Settle(t.Context(), []engine.Settlement{{Token: leases[1].Token, Do: engine.Ack}})
	ok(t, err, settled[0].Err)
	gathered := func(do engine.Action) (errs []error) {
		t.Helper()
		var s []engine.Settlement
		for _, l := range leases {
			s = append(s, engine.Settlement{Token: l.Token, Do: do})
		}
		r, err := other.Settle(engine.Gathered(patience(t)), s)
		ok(t, err)
		for i := range r {
			errs = append(errs, r[i].Err)
		}
		return errs
	}
	only(t, 1, gathered(engine.Extend)...)
	only(t, 1, gathered(engine.Ack)...)
}
