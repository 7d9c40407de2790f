package diskengine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestOneInstant lets many times as many messages become due at once as are put in order, from sstables and
// from memory, and has 64 callers lease and ack them while there is a flush and a merge: each goes out
// once, those of priority first within what is put in order, and what is near keeps to its share.
func TestOneInstant(t *testing.T) {
	const ready, callers = 256, 64
	n := disktest.Thorough(6000, 50)
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet},
		diskengine.Tune{SegmentBytes: 1 << 20, BlockBytes: 4 << 10, MergeTables: 100, Ready: ready, OnHeap: true}}
	e := p.open(t)
	ctx := t.Context()
	for part := range 4 {
		var msgs []engine.Message
		for i := part * n / 4; i < (part+1)*n/4; i++ {
			m := message("q", fmt.Sprint(i), time.Hour)
			priority := 1 + uint32(i*7%10)
			m.Priority = &priority
			msgs = append(msgs, m)
			if len(msgs) == 1000 {
				if err := pushAll(t, e, msgs...); err != nil {
					t.Fatal(err)
				}
				msgs = msgs[:0]
			}
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if part < 3 {
			if err := e.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	clock.Advance(time.Hour)
	first := lease(t, e, "q", ready/10)
	for _, l := range first {
		if l.Priority != 1 || int(l.ID) > ready+1 {
			t.Errorf("among the first goes out id %d of priority %d", l.ID, l.Priority)
		}
	}
	var mu sync.Mutex
	seen := make(map[engine.ID]bool)
	most := int64(0)
	note := func(ls []engine.Lease) {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, e.Near())
		for _, l := range ls {
			if seen[l.ID] {
				t.Errorf("%d goes out twice", l.ID)
			}
			seen[l.ID] = true
		}
	}
	note(first)
	settle(t, e, first, engine.Ack)
	var all sync.WaitGroup
	work := func() {
		for {
			g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 20, TTR: time.Hour}})
			if err != nil {
				t.Error(err)
				return
			}
			got := g.Queues[0].Messages
			note(got)
			acks := make([]engine.Settlement, len(got))
			for i, l := range got {
				acks[i] = engine.Settlement{Token: l.Token, Do: engine.Ack}
			}
			out, err := e.Settle(ctx, acks)
			if err != nil {
				t.Error(err)
				return
			}
			for _, s := range out {
				if s.Err != nil {
					t.Error(s.Err)
				}
			}
			if len(got) == 0 && !g.Queues[0].More {
				return
			}
		}
	}
	for range callers {
		all.Go(work)
	}
	for _, do := range []func() error{func() error { return e.Flush(ctx) }, func() error { return e.Merge(ctx) }} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if len(seen) != n {
		t.Errorf("%d of %d went out", len(seen), n)
	}
	if i, err := e.Queue(ctx, "q"); err != nil || i.Scheduled+i.Ready+i.Leased+i.Dead != 0 {
		t.Errorf("left is %+v: %v", i, err)
	}
	if err := e.Sound(); err != nil {
		t.Error(err)
	}
	// The turns, and what is read ahead of each sstable: 40 bytes each, with room to grow.
	if limit := int64(40 * (2*2*ready + 5*2*1024)); most > limit {
		t.Errorf("what is near takes %d bytes, not %d", most, limit)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
