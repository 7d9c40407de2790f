package diskengine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// unreadable is an engine with some messages, due one after the other in an hour, in an sstable of which
// a block is damaged by spoil.
func unreadable(t *testing.T, n int) (d *disktest.Disk, p place, e *diskengine.Engine, ids []engine.ID) {
	t.Helper()
	clock := enginetest.NewClock()
	d = disktest.New(nil)
	p = place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
	e = p.open(t)
	for i := range n {
		m := message("q", fmt.Sprint("k", i), time.Hour+time.Duration(i)*time.Second)
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err != nil || r[0].Err != nil {
			t.Fatal(r, err)
		}
		ids = append(ids, r[0].ID)
	}
	return d, p, e, ids
}

// TestListOfDamage lists a queue of which a block is damaged, page by page: each of the others is
// there once, in order, from either end.
func TestListOfDamage(t *testing.T) {
	const n = 200
	d, _, e, _ := unreadable(t, n)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	spoil(t, d, 1000)
	var all [2][]string
	for i, newest := range []bool{false, true} {
		q := engine.ListQuery{Queue: "q", State: engine.Scheduled, Limit: 7, Newest: newest}
		for more := true; more; more = q.After != "" {
			page, err := e.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				all[i] = append(all[i], m.Key)
			}
			q.After = page.Next
		}
	}
	up, down := all[0], all[1]
	if len(up) >= n || len(up) < n-30 || len(down) != len(up) {
		t.Fatalf("of %d %d are listed, and %d backwards", n, len(up), len(down))
	}
	last := -1
	for i, key := range up {
		var at int
		if _, err := fmt.Sscanf(key, "k%d", &at); err != nil || at <= last || down[len(down)-1-i] != key {
			t.Errorf("%s is listed behind k%d, and %s backwards", key, last, down[len(down)-1-i])
		}
		last = at
	}
	// Every bound may be in the damaged block.
	start := enginetest.NewClock().Now() // all such clocks begin with the same time
	readable := func(i int) bool { return slices.Contains(up, fmt.Sprint("k", i)) }
	for i := range n {
		after, before := i, i-1
		for after < n && !readable(after) {
			after++
		}
		for before >= 0 && !readable(before) {
			before--
		}
		bound := start.Add(time.Hour + time.Duration(i)*time.Second)
		for q, want := range map[engine.ListQuery]int{{From: bound}: after, {To: bound, Newest: true}: before} {
			q.Queue, q.State, q.Limit = "q", engine.Scheduled, 1
			page, err := e.List(t.Context(), q)
			if err != nil || len(page.Messages) == 0 && 0 <= want && want < n || len(page.Messages) > 0 && page.Messages[0].Key != fmt.Sprint("k", want) {
				t.Errorf("the first beyond k%d, the latest first %v: %v, %v, want k%d", i, q.Newest, page.Messages, err, want)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRedriveOfDamage brings dead messages back of which some cannot be read, by their ids and all:
// the others are ready.
func TestRedriveOfDamage(t *testing.T) {
	const n = 200
	for _, all := range []bool{false, true} {
		clock := enginetest.NewClock()
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512}}
		e := p.open(t)
		var ids []engine.ID
		for i := range n {
			push(t, e, fmt.Sprint("k", i), 0)
		}
		leased := lease(t, e, "q", n)
		settle(t, e, leased, engine.Bury)
		for _, l := range leased {
			ids = append(ids, l.ID)
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		spoil(t, d, 1000)
		if all {
			ids = nil
		}
		got, err := e.Redrive(t.Context(), "q", ids, 0)
		if err != nil || got.Redriven >= n || got.Redriven < n-30 {
			t.Errorf("of %d dead ones %+v: %v", n, got, err)
		}
		if back := len(drain(t, e)); int64(back) != int64(got.Redriven) {
			t.Errorf("%+v, and %d are ready", got, back)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
