package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPurgedAreNotPending pushes in the midst of a purge: what that removes takes no place under
// max_pending from its beginning on, and what is leased does.
func TestPurgedAreNotPending(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		t.Run(fmt.Sprint("flushed ", flushed), func(t *testing.T) {
			h, _ := simulation()
			e := h.Open(t).(*diskengine.Engine)
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			const many = 600 // not removed at once
			var msgs, others []engine.Message
			for i := range many {
				msgs = append(msgs, message("q", fmt.Sprint(i), time.Hour))
				others = append(others, message("q", fmt.Sprint("other", i), time.Hour))
			}
			if _, err := e.Configure(t.Context(), "q", engine.Settings{MaxPending: many + 1}, ""); err != nil {
				t.Fatal(err)
			}
			if err := pushAll(t, e, append(msgs, message("q", "held", 0))...); err != nil {
				t.Fatal(err)
			}
			if n := len(lease(t, e, "q", 1)); n != 1 {
				t.Fatalf("leased %d", n)
			}
			if flushed {
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			tried := false
			err := h.Meanwhile(e, "purge", func() error {
				_, err := e.Purge(t.Context(), "q", 0)
				return err
			}, func(where string) {
				if where != "purge" || tried {
					return
				}
				tried = true
				if err := pushAll(t, e, others...); err != nil {
					t.Errorf("push in the midst of a purge: %v", err)
				}
				if err := pushAll(t, e, message("q", "beyond", time.Hour)); !errors.Is(err, engine.ErrLimit) {
					t.Errorf("push beyond max_pending: %v", err)
				}
			})
			if err != nil || !tried {
				t.Errorf("purge: %v; pushed meanwhile: %v", err, tried)
			}
			if err := e.Sound(); err != nil {
				t.Error(err)
			}
			if q, err := e.Queue(t.Context(), "q"); err != nil || q.Leased != 1 || q.Scheduled != many {
				t.Errorf("%v, %+v", err, q)
			}
		})
	}
}

// TestPurgedStaysPurged purges a queue whose messages are in sstables, of which each slice is named whole, and has
// a flush let go of the log that tells of the purge: what is purged does not come back when the store is opened
// again, and what another queue has in the same sstables stays.
func TestPurgedStaysPurged(t *testing.T) {
	d := vfstest.New(nil)
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

// TestPurgeSparesWhoIsBroughtBack redrives a dead message in the midst of a purge that leaves the
// dead alone: it is there at once, and is not removed, nor when the store is opened again.
func TestPurgeSparesWhoIsBroughtBack(t *testing.T) {
	h, _ := simulation()
	e := h.Open(t).(*diskengine.Engine)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := pushAll(t, e, message("q", "dead", 0), message("q", "a", time.Hour), message("q", "b", time.Hour)); err != nil {
		t.Fatal(err)
	}
	settle(t, e, lease(t, e, "q", 1), engine.Bury)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := func(when string) {
		t.Helper()
		if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "dead"}); err != nil || i.State != engine.Ready {
			t.Errorf("%s: %v, %+v", when, err, i)
		}
	}
	tried := false
	err := h.Meanwhile(e, "purge", func() error {
		_, err := e.Purge(t.Context(), "q", 0)
		return err
	}, func(where string) {
		if where != "purge" || tried {
			return
		}
		tried = true
		if r, err := e.Redrive(t.Context(), "q", nil, 0); err != nil || r.Redriven != 1 {
			t.Errorf("redrive in the midst of a purge: %v, %+v", err, r)
		}
		back("in the midst of the purge")
		if err := e.FlushStill(t.Context()); err != nil { // the log tells again of the purge
			t.Error(err)
		}
	})
	if err != nil || !tried {
		t.Errorf("purge: %v; redriven meanwhile: %v", err, tried)
	}
	back("after the purge")
	e = h.Reopen(t, e).(*diskengine.Engine)
	back("opened again")
	if q, err := e.Queue(t.Context(), "q"); err != nil || q.Ready != 1 || q.Scheduled != 0 {
		t.Errorf("%v, %+v", err, q)
	}
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

// TestPurgedIsNotSettled settles a lease that has lapsed in the midst of the purge that removes its message: it
// is lost, and the message does not come back.
func TestPurgedIsNotSettled(t *testing.T) {
	const many = 300 // not removed at once
	for _, flushed := range []bool{false, true} {
		for _, do := range []engine.Action{engine.Ack, engine.Release, engine.Extend, engine.Bury} {
			h, _ := simulation()
			e := h.Open(t).(*diskengine.Engine)
			var msgs []engine.Message
			for i := range many {
				msgs = append(msgs, message("q", fmt.Sprint(i), 0))
			}
			if err := pushAll(t, e, msgs...); err != nil {
				t.Fatal(err)
			}
			if flushed {
				if err := e.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			leased := lease(t, e, "q", many)
			for len(leased) < many { // the harness may bound how many are ready to be leased
				leased = append(leased, lease(t, e, "q", many)...)
			}
			last := leased[many-1]
			h.Clock.Set(last.Deadline)
			tried := false
			err := h.Meanwhile(e, "purge", func() error {
				n, err := e.Purge(t.Context(), "q", engine.PurgeDead)
				if n != many {
					t.Errorf("%v, flushed %v: %d are purged", do, flushed, n)
				}
				return err
			}, func(where string) {
				if where != "purge" || tried {
					return
				}
				tried = true
				out, err := e.Settle(t.Context(), []engine.Settlement{{Token: last.Token, Do: do}})
				if err != nil || !errors.Is(out[0].Err, engine.ErrLeaseLost) {
					t.Errorf("%v, flushed %v: %v, %+v", do, flushed, err, out)
				}
			})
			if err != nil || !tried {
				t.Errorf("purge: %v; settled meanwhile: %v", err, tried)
			}
			for _, when := range []string{"at once", "opened again"} {
				if err := e.Sound(); err != nil {
					t.Error(err)
				}
				if q, err := e.Queue(t.Context(), "q"); err != nil || q.Leased+q.Ready+q.Scheduled+q.Dead > 0 {
					t.Errorf("%v, flushed %v, %s: %+v, %v", do, flushed, when, q, err)
				}
				e = h.Reopen(t, e).(*diskengine.Engine)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPurgedIsNotWrittenDown has others lease in the midst of a purge, for whom there is room once the leases
// that have lapsed are out of the table: those whose messages are purged are not kept for that.
func TestPurgedIsNotWrittenDown(t *testing.T) {
	const many = 300 // not removed at once
	for _, flushed := range []bool{false, true} {
		clock := enginetest.NewClock()
		var e *diskengine.Engine
		tried := false
		p := place{vfstest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet, MinFreeBytes: -1, MaxLeases: 2 * many}, diskengine.Tune{SegmentBytes: 128 << 10}}
		p.tune.Between = func(where string) {
			if where == "purge" && !tried {
				tried = true
				if n := len(lease(t, e, "other", engine.MaxLease)); n == 0 {
					t.Error("nobody was leased")
				}
			}
		}
		e = p.open(t)
		var msgs []engine.Message
		for i := range many {
			msgs = append(msgs, message("q", fmt.Sprint(i), 0), message("other", fmt.Sprint(i), 0))
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if flushed {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		clock.Set(lease(t, e, "q", many)[many-1].Deadline)
		if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != many || !tried {
			t.Errorf("flushed %v: %d are purged, %v; leased meanwhile: %v", flushed, n, err, tried)
		}
		for _, when := range []string{"at once", "opened again"} {
			if err := e.Sound(); err != nil {
				t.Error(err)
			}
			if q, err := e.Queue(t.Context(), "q"); err != nil || q.Leased+q.Ready+q.Scheduled > 0 {
				t.Errorf("flushed %v, %s: %+v, %v", flushed, when, q, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
