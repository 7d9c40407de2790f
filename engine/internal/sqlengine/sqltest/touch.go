package sqltest

import (
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Far is the number of messages due far away in Touches, Past the number of those listed as
// finished, and Gone the number of those that have ended beside the old snapshot of Walks.
const (
	Far  = 50_000
	Past = 50_000
	Gone = 100_000
)

// few is the most rows that a call on some messages may touch.
const few = 2_000

// Touches checks that calls on few messages touch few rows, whatever else is scheduled. rows
// returns how many the store has touched.
func Touches(t *testing.T, e engine.Engine, rows func() int64) {
	t.Helper()
	for _, c := range []struct {
		name string
		call func()
	}{
		{"push", func() {
			push(t, e, engine.Message{Queue: "q", Key: "a"}, engine.Message{Queue: "q", Key: "b"}, engine.Message{Queue: "q", Key: "c"},
				engine.Message{Queue: "q", Key: "far", Due: engine.When{In: time.Hour}})
		}},
		{"push of what is there", func() { push(t, e, engine.Message{Queue: "q", Key: "far", OnConflict: engine.Keep}) }},
		{"look-up", func() { _, err := e.Get(patience(t), engine.Ref{Queue: "q", Key: "far"}); ok(t, err) }},
		{"cancel", func() {
			errs, err := e.Cancel(patience(t), []engine.Ref{{Queue: "q", Key: "far"}})
			ok(t, err, errs[0])
		}},
		{"release with another priority", func() {
			l := lease(t, e, 1)[0]
			settled, err := e.Settle(patience(t), []engine.Settlement{{Token: l.Token, Do: engine.Release, Priority: new(uint32(7))}})
			ok(t, err, settled[0].Err)
			if keys := peek(t, e, "q"); keys[0] != l.Key {
				t.Errorf("peeked at %q", keys)
			}
		}},
		{"lease and ack", func() {
			if n := handle(t, e, 2); n != 2 {
				t.Errorf("leased %d, want 2", n)
			}
		}},
		{"peek", func() {
			if keys := peek(t, e, "q"); keys[0] != "c" {
				t.Errorf("peeked at %q", keys)
			}
		}},
		{"find", func() { findID(t, e, "k1") }},
		{"look-up of a finished one", func() { findFinished(t, e, "a") }},
		{"look-up of one long finished", func() { findFinished(t, e, "k2") }},
		{"list of those that finished last", func() {
			page, err := e.(engine.Lister).List(patience(t), engine.ListQuery{Queue: "q", State: engine.Finished, Limit: 10, Newest: true})
			if ok(t, err); len(page.Messages) != 10 {
				t.Errorf("%d are listed", len(page.Messages))
			}
		}},
		{"lease of the last", func() { handle(t, e, 10) }},
		{"a history that is full", func() {
			setHistory(t, e.(engine.Whole), Past-200)
			for counted := int64(Past); counted != Past-200; {
				lease(t, e, 10)
				q, err := e.(engine.Counter).Queue(patience(t), "q")
				ok(t, err)
				if counted = q.History; counted != Past-200 {
					time.Sleep(100 * time.Millisecond) // looks touch rows too
				}
			}
		}},
		{"lease of nothing", func() { lease(t, e, 10) }},
	} {
		before := rows()
		c.call()
		if n := rows() - before; n > few {
			t.Errorf("%s: %d rows touched", c.name, n)
		}
	}
}

// findID finds a message of queue q by its id.
func findID(t *testing.T, e engine.Engine, key string) {
	t.Helper()
	i, err := e.Get(patience(t), engine.Ref{Queue: "q", Key: key})
	ok(t, err)
	queues, err := e.(engine.Finder).Find(patience(t), []engine.ID{i.ID})
	if ok(t, err); queues[0] != "q" {
		t.Errorf("%s is found in queue %q", key, queues[0])
	}
}

// findFinished looks up a finished message of queue q.
func findFinished(t *testing.T, e engine.Engine, key string) {
	i, err := e.Get(patience(t), engine.Ref{Queue: "q", Key: key})
	if ok(t, err); i.State != engine.Finished {
		t.Errorf("%s is %v", key, i.State)
	}
}

// handle leases and acks messages, and returns their number.
func handle(t *testing.T, e engine.Engine, most int) int {
	t.Helper()
	var acks []engine.Settlement
	for _, l := range lease(t, e, most) {
		acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
	}
	settled, err := e.Settle(patience(t), acks)
	ok(t, err)
	for _, s := range settled {
		ok(t, s.Err)
	}
	return len(acks)
}

// Walks checks that calls do not walk over deleted rows each time. There are at least Gone of
// these. walked returns over how many rows the store has walked, and most is the limit.
func Walks(t *testing.T, e engine.Engine, walked func() int64, most int64) {
	t.Helper()
	var each []int64
	for range 24 {
		before := walked()
		push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
		for n := 0; n < 2; {
			n += handle(t, e, 10)
		}
		handle(t, e, 10)
		everyCall(t, e)
		each = append(each, walked()-before)
	}
	// Whole looks happen now and then, and at first, until their cost is known.
	usual := slices.Sorted(slices.Values(each[4:]))[10]
	if t.Logf("%v", each); usual > most {
		t.Errorf("each time %d are walked over, want no more than %d", usual, most)
	}
}

// everyCall makes each kind of call, by key and by id, on a message with a key.
func everyCall(t *testing.T, e engine.Engine) {
	t.Helper()
	far, ref := engine.When{In: time.Hour}, engine.Ref{Queue: "q", Key: "k"}
	push(t, e, engine.Message{Queue: "q", Key: "k", Due: far})
	push(t, e, engine.Message{Queue: "q", Key: "k", OnConflict: engine.Replace})
	for _, do := range []engine.Action{engine.Release, engine.Extend, engine.Retry} {
		leased := lease(t, e, 1)
		if len(leased) != 1 {
			t.Fatalf("before %v: leased %d, want 1", do, len(leased))
		}
		settled, err := e.Settle(patience(t), []engine.Settlement{{Token: leased[0].Token, Do: do, When: &far}})
		ok(t, err, settled[0].Err)
		if do == engine.Extend {
			settled, err = e.Settle(patience(t), []engine.Settlement{{Token: leased[0].Token, Do: engine.Release}})
			ok(t, err, settled[0].Err)
		}
	}
	findID(t, e, "k")
	peek(t, e, "q")
	_, err := e.Reschedule(patience(t), ref, engine.When{In: 2 * time.Hour})
	ok(t, err)
	errs, err := e.Cancel(patience(t), []engine.Ref{ref})
	ok(t, err, errs[0])
}
