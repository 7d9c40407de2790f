package diskengine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestRedriveEnds brings all dead messages of a queue back, of whom one dies again while the second
// page of them is read: it stays dead, and the redrive ends.
func TestRedriveEnds(t *testing.T) {
	const n = 2*engine.MaxPage + 500
	d, clock := disktest.New(nil), enginetest.NewClock()
	e := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20}}.open(t)
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = message("q", fmt.Sprint(i), 0)
	}
	if err := pushAll(t, e, msgs...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		settle(t, e, lease(t, e, "q", engine.MaxPage), engine.Bury)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var again atomic.Bool
	d.Hook(func(c disktest.Call) error {
		if c.Op != disktest.Read || !strings.HasSuffix(c.Name, ".run") || again.Load() {
			return nil
		}
		if i, err := e.Queue(t.Context(), "q"); err == nil && i.Ready == engine.MaxPage && again.CompareAndSwap(false, true) {
			clock.Advance(time.Second)
			settle(t, e, lease(t, e, "q", 1), engine.Bury)
		}
		return nil
	})
	got, err := e.Redrive(t.Context(), "q", nil, 0)
	if err != nil || got.Redriven != n || !again.Load() {
		t.Errorf("of %d dead %+v: %v", n, got, err)
	}
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Dead != 1 || i.Ready != n-1 {
		t.Errorf("%+v, %v", i, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// A redrive of all that meets some who went since it looked does not count them.
func TestRedriveCountsThoseThatThereAre(t *testing.T) {
	const n, some = 100, 3
	met := 0
	for after, more := int64(0), true; more; after += 3 { // reads
		d := disktest.New(nil)
		e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 1 << 20, BlockBytes: 1 << 10}}.open(t)
		for i := range n {
			if err := pushAll(t, e, message("q", fmt.Sprint(i), 0)); err != nil {
				t.Fatal(err)
			}
		}
		got := lease(t, e, "q", n)
		settle(t, e, got, engine.Bury)
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var refs []engine.Ref
		for _, m := range got[n-some:] {
			refs = append(refs, engine.Ref{Queue: "q", ID: m.ID})
		}
		var reads atomic.Int64 // the background reads too
		var went atomic.Bool
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && !went.Load() && reads.Add(1) > after && went.CompareAndSwap(false, true) {
				if _, err := e.Cancel(t.Context(), refs); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		r, err := e.Redrive(t.Context(), "q", nil, 0)
		d.Hook(nil)
		if err != nil || r.Skipped != 0 || r.Redriven < n-some || r.Redriven > n {
			t.Errorf("after %d reads %d of %d went, and the answer is %+v, %v", after, some, n, r, err)
		}
		if more = went.Load(); more && r.Redriven == n-some {
			met++
		}
		if r, err = e.Redrive(t.Context(), "q", []engine.ID{refs[0].ID}, 0); err != nil || r != (engine.Redriven{Skipped: 1}) {
			t.Errorf("who is named and is not there is %+v, %v", r, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if met == 0 {
		t.Error("nobody went while all were brought back")
	}
}
