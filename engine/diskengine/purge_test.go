package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPurgeBesideOthers: between the slices of a purge, messages are pushed, leased, and moved to where the
// purge was before, and memtables are flushed and sstables merged. What was pushed and what is leased stays, and
// all else is gone, also for a process that opens the store after a loss of power.
func TestPurgeBesideOthers(t *testing.T) {
	const many = 1500
	for name, flushed := range map[string]bool{"in a memtable": false, "in sstables": true} {
		t.Run(name, func(t *testing.T) {
			d := disktest.New(nil)
			p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20, OnHeap: true}}
			var e *diskengine.Engine
			slices := 0
			p.tune.Between = func(where string) {
				if where != "purge" {
					return
				}
				switch slices++; slices {
				case 1, 4:
					push(t, e, fmt.Sprint("new", slices), time.Hour)
					lease(t, e, "q", 10)
				case 2:
					must(t, e.Flush(t.Context()))
				case 3:
					for i := many - 10; i < many; i++ {
						_, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(i)}, engine.When{In: time.Millisecond})
						must(t, err)
					}
					must(t, e.Merge(t.Context()))
				}
			}
			e = p.open(t)
			var all []engine.Message
			for i := range many {
				all = append(all, message("q", fmt.Sprint(i), time.Duration(max(0, i-many/2))*time.Hour))
			}
			for i := 0; i < many; i += many / 3 {
				must(t, pushAll(t, e, all[i:i+many/3]...))
				if flushed {
					must(t, e.Flush(t.Context()))
				}
			}
			lease(t, e, "q", 10)
			n, err := e.Purge(t.Context(), "q", 0)
			if err != nil || n != many-30 || slices < 4 {
				t.Fatalf("%d purged in %d slices: %v", n, slices, err)
			}
			holds := func(leased, ready int64) {
				t.Helper()
				q, err := e.Queue(t.Context(), "q")
				if err != nil || q.Leased != leased || q.Ready != ready || q.Scheduled != 2 {
					t.Errorf("%+v, %v", q, err)
				}
				must(t, e.Sound())
			}
			holds(30, 0)
			p.fs, p.tune.Between = d.Crash(disktest.Nothing()), nil
			must(t, e.Close())
			e = p.open(t)
			holds(30, 0)
			must(t, e.Close())
		})
	}
}

// TestPurgeCutShort: a purge ends when its caller leaves or the engine closes. It tells how many are gone, and
// another purge removes the rest.
func TestPurgeCutShort(t *testing.T) {
	const many = 1000
	for name, want := range map[string]error{"left": context.Canceled, "closed": engine.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20}}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			closed := make(chan error, 1)
			var e *diskengine.Engine
			ends := false
			p.tune.Between = func(where string) {
				switch {
				case where != "purge" || ends:
				case name == "left":
					leave()
				default:
					ends = true
					go func() { closed <- e.Close() }()
					<-e.Ends()
				}
			}
			e = p.open(t)
			for i := range many {
				push(t, e, fmt.Sprint(i), time.Hour)
			}
			n, err := e.Purge(ctx, "q", 0)
			if n == 0 || n == many || !errors.Is(err, want) {
				t.Errorf("%d purged, %v", n, err)
			}
			if name == "closed" {
				must(t, <-closed)
			} else {
				must(t, e.Close())
			}
			p.tune.Between = nil
			e = p.open(t)
			if rest, err := e.Purge(t.Context(), "q", 0); err != nil || rest != many-n {
				t.Errorf("%d and %d purged of %d, %v", n, rest, many, err)
			}
			must(t, e.Close())
		})
	}
}

// TestPurgedStaysPurged purges a queue whose messages are in sstables, of which each slice is named whole, and has
// a flush let go of the log that tells of the purge: what is purged does not come back when the store is opened
// again, and what another queue has in the same sstables stays.
func TestPurgedStaysPurged(t *testing.T) {
	d := disktest.New(nil)
	p := place{d, "data", diskengine.Config{Logger: quiet, RetryFor: -1}, diskengine.Tune{SegmentBytes: 8 << 10, SpanBytes: 1 << 30}}
	e := p.open(t)
	const each = 5
	for _, queue := range []string{"q", "other"} {
		var msgs []engine.Message
		for i := range 3 * each {
			m := message(queue, fmt.Sprint(i), 0)
			if m.Remember = time.Hour; i >= 2*each {
				m.Due.In = time.Hour
			}
			msgs = append(msgs, m)
		}
		must(t, pushAll(t, e, msgs...))
		settle(t, e, lease(t, e, queue, each), engine.Bury)
		settle(t, e, lease(t, e, queue, each), engine.Ack)
	}
	must(t, e.Flush(t.Context()))
	if n, err := e.Purge(t.Context(), "q", engine.PurgeDead|engine.PurgeFinished); err != nil || n != 3*each {
		t.Fatalf("%d are purged, %v", n, err)
	}
	for range 2 {
		must(t, pushAll(t, e, message("new", "", time.Hour)))
		must(t, e.Flush(t.Context()))
	}
	p.fs = d.Kill()
	must(t, e.Close())
	e = p.open(t)
	for queue, want := range map[string]int64{"q": 0, "other": each} {
		if q, err := e.Queue(t.Context(), queue); err != nil || q.Scheduled != want || q.Dead != want || q.Finished != want {
			t.Errorf("of %d in each state %s has %+v, %v", want, queue, q, err)
		}
	}
	must(t, e.Close())
}

// TestPurgeAtADeadline: a message whose lease ends at the instant of a purge is removed, one that is leased for
// a millisecond more stays, also when the store is opened again.
func TestPurgeAtADeadline(t *testing.T) {
	for left, want := range map[time.Duration]int64{0: 0, time.Millisecond: 1} {
		for _, flushed := range []bool{false, true} {
			h, _ := simulation()
			e := h.Open(t).(*diskengine.Engine)
			if err := pushAll(t, e, message("q", "leased", 0)); err != nil {
				t.Fatal(err)
			}
			if flushed {
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			h.Clock.Set(lease(t, e, "q", 1)[0].Deadline.Add(-left))
			if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != 1-want {
				t.Errorf("%v left, flushed %v: %d are purged, %v", left, flushed, n, err)
			}
			for _, when := range []string{"at once", "opened again"} {
				if q, err := e.Queue(t.Context(), "q"); err != nil || q.Leased != want || q.Ready != 0 {
					t.Errorf("%v left, flushed %v, %s: %+v, %v", left, flushed, when, q, err)
				}
				e = h.Reopen(t, e).(*diskengine.Engine)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPurgeOfWhatMovesOn reschedules all messages of a purge while it is at the memtables, and writes them to an sstable
// while it is there again: they are removed all the same.
func TestPurgeOfWhatMovesOn(t *testing.T) {
	const many = 1000
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20}}
	var e *diskengine.Engine
	slices := 0
	p.tune.Between = func(where string) {
		if where != "purge" {
			return
		}
		switch slices++; slices {
		case 1:
			for i := range many {
				_, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(i)}, engine.When{In: 2 * time.Hour})
				must(t, err)
			}
		case 2:
			must(t, e.Flush(t.Context()))
		}
	}
	e = p.open(t)
	var all []engine.Message
	for i := range many {
		all = append(all, message("q", fmt.Sprint(i), time.Hour))
	}
	must(t, pushAll(t, e, all...))
	must(t, e.Flush(t.Context()))
	if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != many {
		t.Errorf("%d of %d are purged: %v", n, many, err)
	}
	if q, err := e.Queue(t.Context(), "q"); err != nil || q.Scheduled != 0 {
		t.Errorf("left is %+v, %v", q, err)
	}
	must(t, e.Close())
}

// TestPurgeAheadOfTheLog purges many messages while the disk does not sync the log: what waits for that is in memory,
// and does not grow with them.
func TestPurgeAheadOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 250_000
		d := disktest.New(nil)
		e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
		all := make([]engine.Message, 1000)
		for i := range all {
			all[i] = message("q", "", time.Hour)
		}
		for range many / len(all) {
			must(t, pushAll(t, e, all...))
		}
		must(t, e.Flush(t.Context()))
		before := enginetest.FigureOf(t, e, "disk_log_bytes", "")
		gate := make(chan struct{})
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Sync && ofLog(c) {
				<-gate
			}
			return nil
		})
		var group sync.WaitGroup
		group.Go(func() {
			if n, err := e.Purge(t.Context(), "q", 0); n != many || err != nil {
				t.Errorf("%d of %d are purged: %v", n, many, err)
			}
		})
		synctest.Wait()
		if ahead := enginetest.FigureOf(t, e, "disk_log_bytes", "") - before; ahead < 100<<10 || ahead > 1100<<10 {
			t.Errorf("%v bytes wait for the disk", ahead)
		}
		close(gate)
		group.Wait()
		must(t, e.Close())
	})
}

// TestPurgeOfMuch: a purge removes all of a queue whose messages have more bytes than are read at a time.
func TestPurgeOfMuch(t *testing.T) {
	const n = 600
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 8 << 20}}.open(t)
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = message("q", "", time.Hour)
		msgs[i].Body = noise(3000)
	}
	must(t, errors.Join(pushAll(t, e, msgs...), e.Flush(t.Context())))
	if removed, err := e.Purge(t.Context(), "q", 0); err != nil || removed != n {
		t.Errorf("%v of %d are removed, %v", removed, n, err)
	}
	must(t, e.Close())
}
