package diskengine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestQueuesAreForgotten makes a queue for each of many users, which is empty again soon: what is known of
// them goes, also from the log, and a queue of that name can be used again; those that hold something stay.
func TestQueuesAreForgotten(t *testing.T) {
	const n = 1500
	synctest.Test(t, func(t *testing.T) {
		p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 256 << 10}}
		e := p.open(t)
		var msgs []engine.Message
		var refs []engine.Ref
		for i := range n {
			m := message(fmt.Sprint("user-", i), "k", time.Hour)
			if msgs = append(msgs, m); i > 0 {
				refs = append(refs, engine.Ref{Queue: m.Queue, Key: m.Key})
			}
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(t.Context()); err != nil { // their parts of the sstable stay for a while
			t.Fatal(err)
		}
		if _, err := e.Cancel(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
		if names, numbers := e.Names(); names != n || numbers != n {
			t.Fatalf("%d queues have %d names and %d numbers", n, names, numbers)
		}
		time.Sleep(5 * time.Minute)
		for _, when := range []string{"after a while", "opened again"} {
			if names, numbers := e.Names(); names > n/2 || numbers != names {
				t.Errorf("%s: of %d queues, all but one of them empty, %d names and %d numbers are kept", when, n, names, numbers)
			}
			if i, err := e.Get(t.Context(), engine.Ref{Queue: "user-0", Key: "k"}); err != nil {
				t.Errorf("%s: %+v, %v", when, i, err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
		}
		hints := make(chan string, n)
		defer e.Watch(func(queue string) { hints <- queue })()
		for i := range n {
			queue := fmt.Sprint("user-", i)
			if err := pushAll(t, e, message(queue, "again", 0)); err != nil {
				t.Fatal(err)
			}
			if got := lease(t, e, queue, 10); len(got) != 1 || got[0].Key != "again" {
				t.Fatalf("%s: %+v is leased", queue, got)
			}
		}
		if len(hints) < n-1 {
			t.Errorf("%d hints came of %d queues", len(hints), n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTurnsAreBounded has a message be ready again and again, in a queue that nobody leases from any more:
// the turns that it leaves behind do not fill the memory.
func TestTurnsAreBounded(t *testing.T) {
	const ready = 100
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 256 << 10, Ready: ready}}.open(t)
	push(t, e, "a", 0)
	push(t, e, "b", 0)
	lease(t, e, "q", 1) // from then on who is ready gets a turn at once
	for range 20 * ready {
		if _, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "b"}, engine.When{At: time.UnixMilli(1)}); err != nil {
			t.Fatal(err)
		}
	}
	if bytes := e.Near(); bytes > 8*ready*40 {
		t.Errorf("the turns of one message take %d bytes", bytes)
	}
	if got := lease(t, e, "q", 10); len(got) != 1 || got[0].Key != "b" {
		t.Errorf("%+v is leased", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
