package diskengine_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestLeasesAreBounded leases as much as may be: one queue does not take all, a claim is held back, and
// what ends makes room. What has lapsed makes room too, also where nobody asks for it any more, and
// comes back with its attempt and its error.
func TestLeasesAreBounded(t *testing.T) {
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet, MaxLeases: 40}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	e := p.open(t)
	for _, queue := range []string{"a", "b"} {
		var all []engine.Message
		for i := range 100 {
			all = append(all, message(queue, fmt.Sprint(i), 0))
		}
		if err := pushAll(t, e, all...); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	take := func(queue string, want int, ttr time.Duration) []engine.Lease {
		t.Helper()
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: 100, Remote: true, TTR: ttr}})
		if err != nil || g.Queues[0].Err != nil {
			t.Fatal(err, g.Queues[0].Err)
		}
		q := g.Queues[0]
		if len(q.Messages) != want || q.More || !q.Held {
			t.Fatalf("%d of %s were leased, want %d; more %v, held %v", len(q.Messages), queue, want, q.More, q.Held)
		}
		if !q.NextDue.After(g.Now) || q.NextDue.After(g.Now.Add(time.Second)) {
			t.Errorf("it is to look again at %v, now is %v", q.NextDue, g.Now)
		}
		return q.Messages
	}
	first := take("a", 20, time.Minute)
	take("a", 0, time.Minute)
	take("b", 10, time.Hour)
	ref := engine.Ref{Queue: "a", Key: "99"}
	if _, err := e.Claim(t.Context(), ref, engine.Want{}); !errors.Is(err, engine.ErrLimit) {
		t.Errorf("a claim beyond: %v", err)
	}
	settle(t, e, first[:6], engine.Ack)
	take("a", 1, time.Minute) // it has 15 then, and as many are left
	clock.Advance(2 * time.Minute)
	if i, err := e.Queue(t.Context(), "a"); err != nil || i.Leased != 0 || i.Ready != 94 {
		t.Fatal(err, i)
	}
	take("b", 10, time.Hour)             // those that have lapsed do not count: they are written down
	settle(t, e, first[6:7], engine.Ack) // their tokens settle all the same
	settle(t, e, first[7:8], engine.Extend)
	settle(t, e, first[8:9], engine.Bury)
	anew := message("a", first[9].Key, time.Hour)
	anew.OnConflict, anew.Token = engine.Replace, first[9].Token
	if r, err := e.Push(t.Context(), []engine.Message{anew, anew}); err != nil || r[0].Err != nil || !errors.Is(r[1].Err, engine.ErrLeaseLost) {
		t.Errorf("replaced twice: %v, %+v", err, r)
	}
	if out, err := e.Settle(t.Context(), []engine.Settlement{{Token: first[6].Token, Do: engine.Ack}}); err != nil || !errors.Is(out[0].Err, engine.ErrLeaseLost) {
		t.Errorf("settled twice: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	take("b", 0, time.Hour)            // those stay leased
	again := take("a", 9, time.Minute) // beside the one
	for _, l := range again {
		if l.Attempt != 2 || l.LastError != engine.Lapsed {
			t.Errorf("%s comes back with attempt %d, %q", l.Key, l.Attempt, l.LastError)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLeasedAreListedByDeadline lists those who are leased page by page, from either end: each appears
// once, in the order of the deadlines, whatever has lapsed, been settled or extended.
func TestLeasedAreListedByDeadline(t *testing.T) {
	const n = 120
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	e := p.open(t)
	var msgs []engine.Message
	for i := range n {
		msgs = append(msgs, message("q", fmt.Sprint(i), 0))
	}
	if err := pushAll(t, e, msgs...); err != nil {
		t.Fatal(err)
	}
	var want []engine.ID
	for i := range n {
		ttr := time.Duration(1+i*37%n/4) * time.Minute // some alike
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, Remote: i%2 == 0, TTR: ttr}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(err)
		}
		l := g.Queues[0].Messages
		switch i % 10 {
		case 1:
			settle(t, e, l, engine.Ack)
		case 2:
			settle(t, e, l, engine.Extend) // for an hour
		}
	}
	clock.Advance(10*time.Minute + time.Second)
	deadlines := make(map[engine.ID]time.Time)
	for _, newest := range []bool{false, true} {
		var got []engine.ID
		q := engine.ListQuery{Queue: "q", State: engine.Leased, Limit: 7, Newest: newest}
		for {
			page, err := e.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Messages {
				got = append(got, i.ID)
				deadlines[i.ID] = i.Deadline
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if newest {
			slices.Reverse(got)
		}
		i, err := e.Queue(t.Context(), "q")
		if err != nil || int64(len(got)) != i.Leased {
			t.Errorf("%d are listed of %d: %v", len(got), i.Leased, err)
		}
		sorted := slices.IsSortedFunc(got, func(a, b engine.ID) int {
			return cmp.Or(deadlines[a].Compare(deadlines[b]), cmp.Compare(a, b))
		})
		if !sorted || newest && !slices.Equal(got, want) {
			t.Errorf("newest first %v: listed %v", newest, got)
		}
		want = got
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
