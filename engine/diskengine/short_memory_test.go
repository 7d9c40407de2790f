package diskengine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestOrderWhereMemoryIsShort leases from queues in turn each of which has the others forget what is
// ready, while messages of any priority come, go and come back: they go out in order.
func TestOrderWhereMemoryIsShort(t *testing.T) {
	const queues, n, rounds = 2, 1500, 100
	clock := enginetest.NewClock()
	e := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 256 << 10, BlockBytes: 512, NearBytes: 1}}.open(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type waiting struct {
		priority uint32
		due      int64
		id       engine.ID
	}
	var waits [queues][]waiting
	add := func(q, n int) {
		msgs := make([]engine.Message, n)
		for i := range msgs {
			p := uint32(rng.IntN(5))
			msgs[i] = engine.Message{Queue: fmt.Sprint(q), Due: engine.When{At: clock.Now().Add(time.Duration(rng.IntN(120)-60) * time.Second)}, Terms: engine.Terms{Priority: &p}}
		}
		r, err := e.Push(t.Context(), msgs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r {
			waits[q] = append(waits[q], waiting{*msgs[i].Priority, r[i].Due.UnixMilli(), r[i].ID})
		}
	}
	for q := range queues {
		add(q, n)
	}
	sort := func(q int) { // as they go out
		now := clock.Now().UnixMilli()
		slices.SortFunc(waits[q], func(a, b waiting) int {
			return cmp.Or(cmp.Compare(max(0, a.due-now), max(0, b.due-now)), cmp.Compare(a.priority, b.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
		})
	}
	for round := range rounds {
		if round%50 == 0 {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		q := rng.IntN(queues)
		if rng.IntN(3) == 0 {
			add(q, 1+rng.IntN(60))
		}
		if n := min(rng.IntN(40), len(waits[q])); rng.IntN(2) == 0 { // the next ones, whose turns are left behind
			sort(q)
			refs := make([]engine.Ref, n)
			for i := range refs {
				refs[i] = engine.Ref{Queue: fmt.Sprint(q), ID: waits[q][i].id}
			}
			if _, err := e.Cancel(t.Context(), refs); err != nil {
				t.Fatal(err)
			}
			waits[q] = slices.Clone(waits[q][n:])
		}
		if rng.IntN(10) == 0 { // else all that is due was known before
			clock.Advance(time.Duration(rng.IntN(10)) * time.Second)
		}
		most := 1 + rng.IntN(8)
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: fmt.Sprint(q), Max: most, TTR: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		now := g.Now.UnixMilli()
		sort(q)
		want := waits[q]
		for i, w := range want {
			if w.due > now || i == most {
				want = want[:i]
				break
			}
		}
		got := g.Queues[0].Messages
		for i := range min(len(got), len(want)) {
			if got[i].ID != want[i].id {
				t.Fatalf("round %d: %d. of queue %d goes out message %d, due %v, of priority %d; want %+v", round, i, q, got[i].ID, got[i].Due, got[i].Priority, want[i])
			}
		}
		if len(got) < len(want) && !g.Queues[0].More || len(got) > len(want) {
			t.Fatalf("round %d: %d go out of queue %d, %d may", round, len(got), q, len(want))
		}
		var back []engine.Lease
		kept := waits[q][len(got):]
		for i, l := range got {
			if rng.IntN(3) == 0 {
				back = append(back, l)
				kept = append(kept, want[i])
			}
		}
		waits[q] = slices.Clone(kept)
		settle(t, e, back, engine.Release)
	}
	if err := e.Sound(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLittleIsLookedForAgain leases a few messages at a time from queues in turn that have more ready than
// there is memory for: they are not all read again each time.
func TestLittleIsLookedForAgain(t *testing.T) {
	const queues, n, readyLen, rounds = 6, 1500, 1000, 60
	var reads atomic.Int64
	d, clock := disktest.New(nil), enginetest.NewClock()
	e := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 256 << 10, BlockBytes: 512, Ready: readyLen, NearBytes: 100 << 10}}.open(t)
	for q := range queues {
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i] = message(fmt.Sprint(q), "", 0)
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			reads.Add(1)
		}
		return nil
	})
	for round := range rounds {
		if round == queues { // each has been gone through once
			reads.Store(0)
		}
		if got := lease(t, e, fmt.Sprint(round%queues), 4); len(got) != 4 {
			t.Fatalf("%d are leased", len(got))
		}
	}
	all := int64(queues * n / 8) // about so many blocks are there
	t.Logf("%d blocks are read for %d leases, %d are there", reads.Load(), 4*rounds, all)
	if reads.Load() > all {
		t.Errorf("%d blocks are read for %d leases", reads.Load(), 4*rounds)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTheNextOnesGo cancels those who would go out next, and were all that was looked for: who goes out
// in their place is one of their priority from further behind, not one of the next priority.
func TestTheNextOnesGo(t *testing.T) {
	const n, first = 600, 10 // of each half
	e := place{disktest.New(nil), "data", diskengine.Config{Now: enginetest.NewClock().Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 256 << 10, NearBytes: 1}}.open(t)
	msgs := make([]engine.Message, n)
	for i := range msgs {
		p := uint32(1)
		if i%(n/2) < first {
			p = 0
		}
		msgs[i] = engine.Message{Queue: "q", Key: fmt.Sprint(i), Terms: engine.Terms{Priority: &p}}
	}
	if err := pushAll(t, e, append(msgs, message("other", "", 0), message("other", "", 0))...); err != nil {
		t.Fatal(err)
	}
	next := 0
	leases := func(queue string) {
		t.Helper()
		got := lease(t, e, queue, 1)
		if queue == "q" && (len(got) != 1 || got[0].Key != fmt.Sprint(next)) {
			t.Fatalf("out goes %+v, the next one is %d", got, next)
		}
	}
	leases("q")     // all are looked for
	leases("other") // and forgotten
	next = 1
	leases("q") // some are looked for
	var refs []engine.Ref
	for i := 2; i < first; i++ {
		refs = append(refs, engine.Ref{Queue: "q", Key: fmt.Sprint(i)})
	}
	if _, err := e.Cancel(t.Context(), refs); err != nil {
		t.Fatal(err)
	}
	next = n / 2
	leases("q")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
