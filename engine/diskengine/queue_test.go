package diskengine_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestQueuesThatWentTakeNoMemory makes many queues and empties them: their memory is given back, but for
// some that are kept. Those that still hold something stay.
func TestQueuesThatWentTakeNoMemory(t *testing.T) {
	const queues, stay, each = 12_000, 100, 400 // bytes of names, settings and tables of a queue, at least
	clock := enginetest.NewClock()
	p := place{vfs.OS{}, t.TempDir(), diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 4 << 20}}
	e := p.open(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for at := 0; at < queues; at += 500 {
		var msgs []engine.Message
		var refs []engine.Ref
		for i := at; i < at+500; i++ {
			queue := fmt.Sprintf("queue-%06d", i)
			msgs = append(msgs, message(queue, "k", time.Hour))
			if i >= stay {
				refs = append(refs, engine.Ref{Queue: queue, Key: "k"})
			}
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Cancel(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
	}
	full := heap()
	clock.Advance(2 * time.Minute)
	if err := e.ForgetIdle(); err != nil {
		t.Fatal(err)
	}
	after := heap()
	// Not compared with the heap before: what earlier tests left may have gone meanwhile.
	if given := full - after; given < (queues-stay)*each {
		t.Errorf("%d queues that went gave back %d bytes, want %d at least", queues-stay, given, (queues-stay)*each)
	}
	all, _, err := e.Queues(t.Context(), "", 1000)
	if err != nil || len(all) != stay {
		t.Errorf("%d queues are there, want %d: %v", len(all), stay, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestQueuesThatNobodyCallsKeepNoRuns: who asked a queue once, and waits until something is due, does not
// keep the sstables in memory that there were then.
func TestQueuesThatNobodyCallsKeepNoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
		var all []weak.Pointer[sstable.Table]
		for i := range 20 {
			idle := fmt.Sprint("idle", i)
			must(t, pushAll(t, e, message(idle, "k", 1000*time.Hour), message("busy", idle, 1000*time.Hour), message(idle, "ready", 0), message(idle, "held", 0)))
			must(t, e.Flush(t.Context()))
			must(t, e.Merge(t.Context()))
			lease(t, e, idle, 1) // the other one has a turn
			all = append(all, e.Tables()...)
		}
		time.Sleep(time.Hour)
		must(t, e.ForgetIdle())
		runtime.GC()
		runtime.GC() // those that have finalizers
		kept := 0
		for _, r := range all {
			if r.Value() != nil {
				kept++
			}
		}
		if n := len(e.Tables()); kept > n || len(all) < 2*n {
			t.Errorf("%d sstables of %d are in memory, and %d count", kept, len(all), n)
		}
		must(t, e.Close())
	})
}

// TestQueueNumbersEnd: the store has given all numbers to queues that there are.
func TestQueueNumbersEnd(t *testing.T) {
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{}}.open(t)
	e.LastQueue()
	must(t, pushAll(t, e, message("last", "", time.Hour)))
	for range 2 {
		r, err := e.Push(t.Context(), []engine.Message{message("beyond", "k", time.Hour), message("last", "", time.Hour)})
		if err != nil || !errors.Is(r[0].Err, engine.ErrLimit) || !strings.Contains(r[0].Err.Error(), "tarry copy") || r[1].Err != nil {
			t.Errorf("%v, %v", r, err)
		}
	}
	if _, err := e.PushAtomic(t.Context(), []engine.Message{message("beyond", "k", time.Hour)}); !errors.Is(err, engine.ErrLimit) {
		t.Error(err)
	}
	if err := e.Pause(t.Context(), "beyond", time.Hour); !errors.Is(err, engine.ErrLimit) {
		t.Error(err)
	}
	must(t, e.Close())
}
