package diskengine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPurgeSparesTheLeased purges a queue of whom more are leased than a step looks at: by other
// processes, by this one, by one that has ended, and for a time that is over by a clock which stepped
// back. A memtable is sealed while the log is told of them; while the purge is under way some leases
// end, and the memtable is written to an sstable. Nothing that was leased is lost, all that waited is gone,
// and so it is for who opens the store after a loss of power at any of these times.
func TestPurgeSparesTheLeased(t *testing.T) {
	const total, remote, local, early, ended, over, released, lapsing = 1200, 600, 100, 20, 50, 40, 30, 10
	clock := enginetest.NewClock()
	d := vfstest.New(nil)
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20, OnHeap: true}}
	e := p.open(t)
	var all []engine.Message
	for i := range total {
		m := message("q", fmt.Sprint(i), 0)
		m.Isolate = new(false) // it is leased with others however often it has lapsed
		all = append(all, m)
	}
	if err := pushAll(t, e, all...); err != nil {
		t.Fatal(err)
	}
	take := func(n int, remote bool, ttr time.Duration) []engine.Lease {
		t.Helper()
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n, Remote: remote, TTR: ttr}})
		if err != nil || len(g.Queues[0].Messages) != n {
			t.Fatal(err, len(g.Queues[0].Messages), n)
		}
		return g.Queues[0].Messages
	}
	take(ended, false, time.Hour)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	meanwhile := make(map[string]func()) // once, at the first slice of something
	p.tune.Between = func(where string) {
		mu.Lock()
		fn := meanwhile[where]
		delete(meanwhile, where)
		mu.Unlock()
		if fn != nil {
			fn()
		}
	}
	e = p.open(t) // what was ended is ready again, and goes out first
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Leased != 0 {
		t.Fatal(err, i)
	}
	take(ended, true, 300*time.Millisecond) // written down, and over in a moment
	clock.Advance(400 * time.Millisecond)
	held := take(remote-ended, true, time.Hour)
	held = append(held, take(ended, true, time.Hour)...)
	take(local, false, time.Hour)
	lapse := take(lapsing, true, time.Minute)
	take(over, true, time.Second)
	clock.Advance(1100 * time.Millisecond)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Leased != remote+local+lapsing {
		t.Fatal(err, i)
	}
	clock.Advance(-500 * time.Millisecond)
	take(early, true, time.Hour)
	const leased = remote + local + early + lapsing
	crashed := make(map[string]*vfstest.Disk)
	crash := func(when string) { crashed[when] = d.Crash(vfstest.Nothing()) }
	flush := func() {
		t.Helper()
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	extend := func(l engine.Lease, ttr time.Duration) {
		t.Helper()
		out, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: engine.Extend, TTR: ttr}})
		if err != nil || out[0].Err != nil {
			t.Error(out, err)
		}
	}
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	meanwhile["rewrite leases"] = func() {
		go func() {
			defer close(done)
			if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != total-leased {
				t.Errorf("%d are purged of %d: %v", n, total-leased, err)
			}
		}()
		<-begun
	}
	meanwhile["purge begins"] = func() {
		extend(held[len(held)-1], 30*time.Minute) // which ends before some of whom the log was told
		crash("before it counts")
	}
	meanwhile["purge"] = func() {
		push(t, e, "later", 0) // the log is durable
		crash("when it has begun")
		close(begun)
		<-goOn
	}
	flush()
	crash("when the flush is over")
	settle(t, e, held[:released], engine.Release)
	clock.Advance(2 * time.Minute)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Leased != leased-released-lapsing {
		t.Error(err, i)
	}
	clock.Advance(-time.Hour) // the lease of one ends before the purge began, by a clock that steps back
	extend(held[released], time.Minute)
	clock.Advance(time.Hour)
	flush()
	crash("when it was written again")
	close(goOn)
	<-done
	if len(meanwhile) > 0 {
		t.Fatalf("%d things did not happen meanwhile", len(meanwhile))
	}
	push(t, e, "last", 0)
	crash("when it is over")
	look := func(when string, e engine.Whole, want engine.QueueInfo) {
		t.Helper()
		i, err := e.Queue(t.Context(), "q")
		if err != nil || i.Leased != want.Leased || i.Ready != want.Ready {
			t.Errorf("%s: %d are leased, %d ready, want %d, %d: %v", when, i.Leased, i.Ready, want.Leased, want.Ready, err)
		}
	}
	look("now", e, engine.QueueInfo{Leased: leased - released - lapsing - 1, Ready: released + lapsing + 1 + 2})
	settle(t, e, lapse[:1], engine.Ack)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for when, want := range map[string]engine.QueueInfo{ // those of the process are ready again
		"before it counts":          {Leased: leased - local - lapsing, Ready: total - leased + local + lapsing},
		"when it has begun":         {Leased: leased - local - lapsing, Ready: local + lapsing + 1},
		"when the flush is over":    {Leased: leased - local - lapsing, Ready: local + lapsing + 1},
		"when it was written again": {Leased: leased - local - released - lapsing - 1, Ready: local + released + lapsing + 1 + 1},
		"when it is over":           {Leased: leased - local - released - lapsing - 1, Ready: local + released + lapsing + 1 + 2},
	} {
		again := p
		again.fs, again.tune.Between = crashed[when], nil
		e := again.open(t)
		look(when, e, want)
		if err := e.Sound(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
