package memengine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func configure(t *testing.T, e *Engine, s engine.Settings) {
	t.Helper()
	if _, err := e.Configure(t.Context(), "q", s, ""); err != nil {
		t.Fatal(err)
	}
}

// die has n messages die, a millisecond apart, and returns their ids.
func die(t *testing.T, e *Engine, c *enginetest.Clock, n int) []engine.ID {
	t.Helper()
	var ids []engine.ID
	for i := range n {
		push(t, e, msg("q", fmt.Sprint(i), 0))
		l := lease(t, e, "q", 1).Messages[0]
		settle(t, e, engine.Settlement{Token: l.Token, Do: engine.Bury})
		c.Advance(time.Millisecond)
		ids = append(ids, l.ID)
	}
	return ids
}

// However many dead have been kept long enough, one call drops some of them, and nobody
// sees the others.
func TestDroppingOfTheDeadIsBounded(t *testing.T) {
	const n = 8*dropChunk + 7
	e, c := newEngine(t)
	ids := die(t, e, c, n)
	configure(t, e, engine.Settings{DeadKeep: time.Hour})
	c.Advance(2 * time.Hour)
	last := engine.Ref{Queue: "q", ID: ids[n-1]}
	left := n
	for what, sees := range map[string]func() bool{
		"get by id": func() bool {
			_, err := e.Get(t.Context(), last)
			return !errors.Is(err, engine.ErrNotFound)
		},
		"get by key": func() bool {
			_, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(n - 1)})
			return !errors.Is(err, engine.ErrNotFound)
		},
		"list": func() bool {
			page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 10})
			return err != nil || len(page.Messages) > 0
		},
		"list from the end": func() bool {
			page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 10, Newest: true})
			return err != nil || len(page.Messages) > 0
		},
		"cancel": func() bool {
			errs, err := e.Cancel(t.Context(), []engine.Ref{last})
			return err != nil || !errors.Is(errs[0], engine.ErrNotFound)
		},
		"redrive": func() bool {
			r, err := e.Redrive(t.Context(), "q", nil, 0)
			return err != nil || r != engine.Redriven{}
		},
		"redrive by id": func() bool {
			r, err := e.Redrive(t.Context(), "q", ids[n-1:], 0)
			return err != nil || r != engine.Redriven{Skipped: 1}
		},
	} {
		if sees() {
			t.Errorf("%s sees a dead one that is gone", what)
		}
		if got := e.queues["q"].msgs.n; got != left-dropChunk {
			t.Errorf("%s leaves %d, of %d", what, got, left)
		}
		left -= dropChunk
	}
	if m, err := e.Purge(t.Context(), "q", engine.PurgeDead); err != nil || m != 0 {
		t.Errorf("%d were purged, %v", m, err)
	}
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// What has been kept long enough does not come back when the dead may stay for longer.
func TestTheDroppedDoNotComeBack(t *testing.T) {
	e, c := newEngine(t)
	die(t, e, c, 3*dropChunk)
	configure(t, e, engine.Settings{DeadKeep: time.Hour})
	c.Advance(2 * time.Hour)
	configure(t, e, engine.Settings{})
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Of the dead those that died last stay, whoever died while the number was not bounded.
func TestDeadMax(t *testing.T) {
	e, c := newEngine(t)
	ids := die(t, e, c, 2*dropChunk)
	expect := func(want []engine.ID) {
		t.Helper()
		page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var got []engine.ID
		for _, i := range page.Messages {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	configure(t, e, engine.Settings{DeadMax: 5})
	expect(ids[len(ids)-5:])
	ids = append(ids, die(t, e, c, 3)...)
	expect(ids[len(ids)-5:])

	// More that lapse together than one visit drops, long after their deadlines: those
	// that died first go first.
	for i := range 2 * dropChunk {
		m := msg("q", "", 0)
		m.MaxAttempts, m.TTR = 1, time.Hour-time.Duration(i)*time.Millisecond
		r := push(t, e, m)
		lease(t, e, "q", 1)
		if i < 5 {
			ids = slices.Insert(ids, 2*dropChunk+3, r[0].ID)
		}
	}
	c.Advance(2 * time.Hour)
	g := lease(t, e, "q", 1)
	expect(ids[len(ids)-5:])
	if g.Died != 5 {
		t.Errorf("%d died and are there, want 5", g.Died)
	}
	configure(t, e, engine.Settings{DeadMax: 1})
	expect(ids[len(ids)-1:])
}

// Those who wait are told when a settlement or new settings free a place, and
// not when there is none.
func TestHintsOfHeldMessages(t *testing.T) {
	e, c := newEngine(t)
	hints := 0
	e.Watch(func(string) { hints++ })
	expect := func(step string, want bool) {
		t.Helper()
		if (hints > 0) != want {
			t.Errorf("%s: %d hints, want some: %v", step, hints, want)
		}
		hints = 0
	}
	configure(t, e, engine.Settings{InFlight: 1})
	expect("settings", true)
	push(t, e, msg("q", "a", 0), msg("q", "b", 0))
	first := lease(t, e, "q", 10)
	if len(first.Messages) != 1 || !first.Held || first.More || !first.NextDue.Equal(first.Messages[0].Deadline) {
		t.Fatalf("%+v", first)
	}
	hints = 0
	push(t, e, msg("q", "c", 0))
	expect("a push that is held back", false)
	settle(t, e, engine.Settlement{Token: first.Messages[0].Token, Do: engine.Ack})
	expect("ack", true)
	configure(t, e, engine.Settings{Rate: 10, Burst: 1})
	hints = 0
	g := lease(t, e, "q", 10)
	if len(g.Messages) != 1 || !g.Held || !g.NextDue.Equal(c.Now().Add(100*time.Millisecond)) {
		t.Fatalf("%+v", g)
	}
	hints = 0
	settle(t, e, engine.Settlement{Token: g.Messages[0].Token, Do: engine.Release})
	expect("a release while the rate holds back", false)
	c.Advance(99 * time.Millisecond)
	if g := lease(t, e, "q", 10); len(g.Messages) != 0 || !g.Held {
		t.Fatalf("before its time: %+v", g)
	}
	c.Advance(time.Millisecond)
	if g := lease(t, e, "q", 10); len(g.Messages) != 1 {
		t.Fatalf("at its time: %+v", g)
	}
	hints = 0
	configure(t, e, engine.Settings{})
	expect("settings that hold nothing back", true)
}

// An atomic push fails whole where the queue would hold too many.
func TestPushAtomicAndMaxPending(t *testing.T) {
	e, c := newEngine(t)
	configure(t, e, engine.Settings{MaxPending: 2})
	over := msg("q", "over", 0)
	over.Due, over.ExpireAfter = engine.When{At: c.Now().Add(-time.Minute)}, time.Second
	rearm := msg("q", "a", 0)
	rearm.OnConflict = engine.Rearm
	fits := []engine.Message{over, msg("q", "a", 0), rearm, msg("other", "x", 0), over, msg("q", "b", 0)}
	if r, err := e.PushAtomic(t.Context(), append(slices.Clone(fits), msg("q", "c", 0))); !errors.Is(err, engine.ErrLimit) || !errors.Is(r[6].Err, engine.ErrLimit) {
		t.Errorf("%+v, %v", r, err)
	}
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Ready != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := e.PushAtomic(t.Context(), fits); err != nil {
		t.Error(err)
	}
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Ready != 2 {
		t.Errorf("%+v, %v", info, err)
	}
}
