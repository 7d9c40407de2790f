package sqltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// peek returns the keys of the first ready messages of queues; "": none.
func peek(t *testing.T, e engine.Engine, queues ...string) []string {
	t.Helper()
	infos, err := e.(engine.Peeker).Peek(patience(t), queues)
	ok(t, err)
	keys := make([]string, len(infos))
	for i := range infos {
		keys[i] = infos[i].Key
	}
	return keys
}

// A lease during a peek gets what the peek shows, of whichever priority it is.
func leaseDuringPeek(t *testing.T, bed Bed) {
	var b *between
	e := bed.Open(t, nil)
	peeker := bed.Open(t, func(s sqlengine.Store) sqlengine.Store { b = &between{Store: s}; return b })
	for priority, key := range []string{7: "before", engine.DefaultPriority: "usual", 5000: "after"} {
		if key != "" {
			push(t, e, engine.Message{Queue: "q", Key: key, Terms: engine.Terms{Priority: new(uint32(priority))}})
		}
	}
	for _, want := range []string{"before", "usual", "after"} {
		leased := ""
		b.open = func() {
			for _, l := range lease(t, e, 1) {
				leased = l.Key
			}
		}
		if keys := peek(t, peeker, "q"); keys[0] != want || leased != want {
			t.Errorf("peeked at %q, meanwhile leased %q, want %q", keys[0], leased, want)
		}
	}
}

// A peek ends although another transaction holds a lapsed lease and an expired message.
func peekBesideLocked(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	soon := engine.Terms{ExpireAfter: 3 * time.Second}
	push(t, e, engine.Message{Queue: "lapsed", Key: "held"}, engine.Message{Queue: "lapsed", Key: "next", Due: engine.When{In: time.Millisecond}},
		engine.Message{Queue: "expired", Key: "held", Terms: soon})
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "lapsed", Max: 1, TTR: 200 * time.Millisecond, Remote: true}})
	ok(t, err)
	tx := bed.Begin(t, e)
	settled, err := tx.Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}})
	ok(t, err, settled[0].Err)
	errs, err := tx.Cancel(t.Context(), []engine.Ref{{Queue: "expired", Key: "held"}})
	ok(t, err, errs[0])
	want := []string{"next", ""} // once both are over
	for ctx := patience(t); !slices.Equal(peek(t, e, "lapsed", "expired"), want); ok(t, ctx.Err()) {
		time.Sleep(10 * time.Millisecond)
	}
	ok(t, tx.Commit())
	if keys := peek(t, e, "lapsed", "expired"); !slices.Equal(keys, want) {
		t.Errorf("peeked at %q after the commit", keys)
	}
}

// However many messages have expired or lapsed, a peek shows the first ready one.
func peekPastMany(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	old := engine.When{At: time.Now().Add(-time.Hour)}
	msgs := make([]engine.Message, 2*many)
	for i := range msgs {
		msgs[i] = engine.Message{Queue: "q", Due: old, Terms: engine.Terms{ExpireAfter: time.Hour + time.Second, MaxAttempts: 1}}
	}
	push(t, e, msgs...)
	push(t, e, engine.Message{Queue: "q", Key: "last"})
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: many, TTR: time.Second, Remote: true}})
	ok(t, err)
	time.Sleep(time.Until(g.Now.Add(1100 * time.Millisecond)))
	if keys := peek(t, e, "q"); keys[0] != "last" {
		t.Errorf("peeked at %q past %d that have lapsed and %d that have expired", keys, len(g.Queues[0].Messages), 2*many-len(g.Queues[0].Messages))
	}
}

// Peek and Find take more queues and ids than one statement does.
func peekAndFindMany(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	msgs, queues := make([]engine.Message, many), make([]string, many)
	for i := range msgs {
		queues[i] = fmt.Sprint("q", i)
		msgs[i] = engine.Message{Queue: queues[i], Key: fmt.Sprint(i)}
	}
	var ids []engine.ID
	for _, r := range push(t, e, msgs...) {
		ids = append(ids, r.ID)
	}
	for i, key := range peek(t, e, append(queues, "none", queues[0])...) {
		if want := append(msgs, engine.Message{}, msgs[0])[i].Key; key != want {
			t.Fatalf("queue %d: peeked at %q, want %q", i, key, want)
		}
	}
	errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: queues[3], ID: ids[3]}})
	ok(t, err, errs[0])
	found, err := e.(engine.Finder).Find(t.Context(), append(ids, 0, 1<<63, 1<<62, ids[0]))
	ok(t, err)
	want := append(slices.Clone(queues), "", "", "", queues[0])
	want[3] = ""
	if !slices.Equal(found, want) {
		t.Errorf("found %q", found)
	}
}

// A claim of a dead message waits for a push of its key, and fails if that commits. Once that
// message is gone, the dead one takes its key from the memory.
func claimBesidePush(t *testing.T, bed Bed) {
	e := bed.Open(t, nil)
	push(t, e, engine.Message{Queue: "q", Key: "k"})
	settle := func(l engine.Lease, do engine.Action) {
		t.Helper()
		settled, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: do}})
		ok(t, err, settled[0].Err)
	}
	l := lease(t, e, 1)[0]
	settle(l, engine.Bury)
	dead := engine.Ref{Queue: "q", ID: l.ID, IfState: engine.Dead}
	again := func(tx Transaction) {
		push(t, tx, engine.Message{Queue: "q", Key: "k", Terms: engine.Terms{Remember: time.Hour}})
	}
	claimed := beside(t, bed, e, again, func() (error, error) {
		_, err := e.Claim(patience(t), dead, engine.Want{})
		return err, nil
	})
	if !errors.Is(claimed, engine.ErrExists) {
		t.Errorf("claimed, %v", claimed)
	}
	settle(lease(t, e, 1)[0], engine.Ack)
	got, err := e.Claim(t.Context(), dead, engine.Want{})
	if ok(t, err); got.Attempt != 2 {
		t.Errorf("claimed %+v", got)
	}
	settle(got, engine.Ack)
	push(t, e, engine.Message{Queue: "q", Key: "k"})
}
