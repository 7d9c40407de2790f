package sqltest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Locked messages of the best priority do not prevent the lease of those after them.
func ranked(t *testing.T, bed Bed) {
	e, other := bed.Open(t, nil), bed.Open(t, nil)
	var msgs []engine.Message
	for i := range 8 {
		msgs = append(msgs, engine.Message{Queue: "q", Key: fmt.Sprint(i), Terms: engine.Terms{Priority: new(uint32(i))}})
	}
	push(t, e, msgs...)
	tx := bed.Begin(t, e)
	for i := range 5 {
		errs, err := tx.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: msgs[i].Key}})
		ok(t, err, errs[0])
	}
	for _, want := range []string{"5", "6", "7"} {
		var got []engine.Lease
		for ctx := patience(t); len(got) == 0; ok(t, ctx.Err()) {
			got = lease(t, other, 1)
		}
		if got[0].Key != want {
			t.Errorf("leased %s, want %s", got[0].Key, want)
		}
	}
}

// many is more than a chunk.
const many = 1100

func manyMessages() []engine.Message {
	msgs := make([]engine.Message, many)
	for i := range msgs {
		msgs[i] = engine.Message{Queue: "q", Key: fmt.Sprint(i), Due: engine.When{In: time.Hour + time.Duration(i)*time.Second}}
	}
	return msgs
}

// beside runs call while a transaction is open. call waits for the lock of its change.
func beside[T any](t *testing.T, bed Bed, e engine.Engine, change func(Transaction), call func() (T, error)) T {
	tx := bed.Begin(t, e)
	change(tx)
	type answer struct {
		got T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		got, err := call()
		done <- answer{got, err}
	}()
	bed.Waits(t)
	ok(t, tx.Commit())
	a := <-done
	ok(t, a.err)
	return a.got
}

func purgeWaits(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	push(t, e, manyMessages()...)
	last := func(tx Transaction) { // of the first chunk
		_, err := tx.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "999"}, engine.When{In: 24 * time.Hour})
		ok(t, err)
	}
	n := beside(t, bed, e, last, func() (int64, error) { return e.Purge(patience(t), "q", 0) })
	info, err := e.Queue(t.Context(), "q")
	if ok(t, err); n != many || info.Scheduled != 0 {
		t.Errorf("%d purged, left %+v", n, info)
	}
}

func redriveWaits(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	msgs := manyMessages()
	for i := range msgs {
		msgs[i].Due = engine.When{}
	}
	push(t, e, msgs...)
	var first engine.ID
	for left := many; left > 0; {
		var bury []engine.Settlement
		for _, l := range lease(t, e, 1000) {
			bury = append(bury, engine.Settlement{Token: l.Token, Do: engine.Bury})
			if first == 0 {
				first = l.ID
			}
		}
		_, err := e.Settle(t.Context(), bury)
		ok(t, err)
		left -= len(bury)
	}
	drop := func(tx Transaction) {
		errs, err := tx.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: first}})
		ok(t, err, errs[0])
	}
	out := beside(t, bed, e, drop, func() (engine.Redriven, error) { return e.Redrive(patience(t), "q", nil, 0) })
	if out.Redriven != many-1 {
		t.Errorf("%+v; want %d redriven", out, many-1)
	}
}

// A purge forgets only the keys that were remembered when it began.
func purgeRemembered(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	purger := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	finish := func(key string) {
		push(t, e, engine.Message{Queue: "q", Key: key, Terms: engine.Terms{Remember: time.Hour}})
		errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: key}})
		ok(t, err, errs[0])
	}
	now := func() time.Time {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
		ok(t, err)
		return g.Now
	}
	finish("before")
	b.open = func() {
		for start := now(); now().Sub(start) < 2*time.Millisecond; {
		}
		finish("after")
	}
	n, err := purger.Purge(t.Context(), "q", engine.PurgeFinished)
	ok(t, err)
	info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "after"})
	if n != 1 || err != nil || info.State != engine.Finished {
		t.Errorf("%d purged, and then %+v, %v", n, info, err)
	}
}

// A call in a transaction with the last connection of a pool succeeds, or says why not.
func alone(t *testing.T, bed Bed) {
	e, other := bed.Alone(t), bed.Open(t, nil)
	push(t, e, engine.Message{Queue: "known"})
	tx := bed.Begin(t, e)
	ctx := patience(t)
	_, err := tx.Push(ctx, []engine.Message{{Queue: "new"}})
	if engine.Code(err) != "unavailable" || ctx.Err() != nil {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	push(t, other, engine.Message{Queue: "new"})
	push(t, tx, engine.Message{Queue: "new"}, engine.Message{Queue: "known"})
	ok(t, tx.Commit())
	if info, err := e.Queue(t.Context(), "new"); err != nil || info.Ready != 2 {
		t.Errorf("%+v, %v", info, err)
	}
}

// After a pause no lease succeeds, not even one that had begun.
func pauseBeside(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	worker := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	push(t, e, engine.Message{Queue: "q"})
	b.open = func() { ok(t, e.Pause(t.Context(), "q", time.Hour)) }
	g, err := worker.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
	ok(t, err)
	if q := g.Queues[0]; len(q.Messages) > 0 || q.More || q.NextDue.Sub(g.Now) < 59*time.Minute {
		t.Errorf("leased %+v at %v", q, g.Now)
	}
	ok(t, e.Resume(t.Context(), "q"))
	if l := lease(t, e, 1); len(l) != 1 || l[0].Attempt != 1 {
		t.Errorf("leased %+v; want it with the first attempt", l)
	}
}
