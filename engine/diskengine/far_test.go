package diskengine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestDueInTheYear9999 keeps messages of the first and of the last instant there is among others,
// through a flush, a merge and an opening, until the last instant comes.
func TestDueInTheYear9999(t *testing.T) {
	first := time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC)
	last := time.Date(engine.MaxYear, 12, 31, 23, 59, 59, 999e6, time.UTC)
	d, clock := disktest.New(nil), enginetest.NewClock()
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 256 << 10, BlockBytes: 512, OnHeap: true}}
	p.tune.Sound = func(err error) { panic(err) }
	e := p.open(t)
	ctx := t.Context()
	soon := clock.Now().Add(time.Hour)
	var due []time.Time
	pushDue := func(key string, at time.Time) {
		t.Helper()
		due = append(due, at)
		if err := pushAll(t, e, engine.Message{Queue: "q", Key: key, Due: engine.When{At: at}, Terms: engine.Terms{ExpireAfter: 1000 * time.Hour}}); err != nil {
			t.Fatal(err)
		}
	}
	step := func(what string) {
		t.Helper()
		switch what {
		case "flush":
			if err := e.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		case "merge":
			if err := e.Merge(ctx); err != nil {
				t.Fatal(err)
			}
		case "reopen":
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if rep, err := verify.Check(d, "data", nil); err != nil || !rep.Sound() {
				t.Fatalf("%s: %v, %+v", what, err, rep)
			}
			e = p.open(t)
		}
	}
	look := func(what string, lasts int) {
		t.Helper()
		m, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "last-0"})
		if err != nil || !m.Due.Equal(last) || m.State != engine.Scheduled {
			t.Errorf("%s: %v, due %v, %v", what, err, m.Due, m.State)
		}
		page, err := e.List(ctx, engine.ListQuery{Queue: "q", State: engine.Scheduled, Newest: true, Limit: lasts})
		if err != nil || len(page.Messages) != lasts {
			t.Fatalf("%s: the list from its end: %v, %v", what, page.Messages, err)
		}
		for _, m := range page.Messages {
			if !m.Due.Equal(last) {
				t.Errorf("%s: at the end of the list: %v", what, m)
			}
		}
		f, err := e.Forecast(ctx, "q", time.Minute, 48*time.Hour)
		n := int64(0)
		for _, b := range f.Buckets {
			n += b.Count
		}
		i, ierr := e.Queue(ctx, "q")
		if err != nil || ierr != nil || n != int64(20*lasts) || i.Scheduled != int64(21*lasts) {
			t.Errorf("%s: %d are forecast, %d scheduled: %v, %v", what, n, i.Scheduled, err, ierr)
		}
	}
	for i := range 2 {
		pushDue(fmt.Sprint("last-", i), last)
		for k := range 20 {
			pushDue(fmt.Sprint("soon-", i, "-", k), soon.Add(time.Duration(k)*time.Minute))
		}
		step("flush")
		look("flushed", i+1)
	}
	step("merge")
	look("merged", 2)
	step("reopen")
	look("opened", 2)

	if err := pushAll(t, e, engine.Message{Queue: "q", Key: "first", Due: engine.When{At: first}}); err != nil {
		t.Fatal(err)
	}
	if got := lease(t, e, "q", 10); len(got) != 1 || !got[0].Due.Equal(first) {
		t.Errorf("of the first instant is leased: %v", got)
	} else {
		settle(t, e, got, engine.Ack)
	}
	clock.Set(soon.Add(time.Hour))
	for got := lease(t, e, "q", 100); len(got) > 0; got = lease(t, e, "q", 100) {
		settle(t, e, got, engine.Ack)
	}
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1}})
	if err != nil || len(g.Queues[0].Messages) != 0 || !g.Queues[0].NextDue.Equal(last) {
		t.Errorf("the next is due at %v: %v", g.Queues[0].NextDue, err)
	}
	clock.Set(last.Add(-time.Millisecond))
	if got := lease(t, e, "q", 10); len(got) > 0 {
		t.Errorf("before the last instant are leased: %v", got)
	}
	clock.Set(last)
	got := lease(t, e, "q", 10)
	if len(got) != 2 || !got[0].Due.Equal(last) {
		t.Errorf("in the last instant are leased: %v", got)
	}
	step("reopen") // remote leases, whose deadlines lie in the year after
	settle(t, e, got, engine.Ack)
	if i, err := e.Queue(ctx, "q"); err != nil || i.Scheduled+i.Ready+i.Leased+i.Dead != 0 {
		t.Errorf("left is %+v: %v", i, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
