package diskengine_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestNoDeathIsDurableBeforeItsRecord moves a message out of an sstable while a flush reads what was deleted there: the
// step has changed memory, and appends its record only when the deletion bitmaps are read.
// When the power goes as soon as the manifest names them, the message is there, moved or not.
func TestNoDeathIsDurableBeforeItsRecord(t *testing.T) {
	var (
		d         = disktest.New(nil)
		clock     = enginetest.NewClock()
		armed     atomic.Bool
		flushing  atomic.Bool
		moving    sync.Once
		begun     sync.Once
		reading   = make(chan struct{}) // the deletion bitmaps are about to be read
		moved     = make(chan struct{}) // the message is in memory elsewhere
		recording = make(chan struct{}) // the step may end
		settling  = make(chan struct{}) // the flush waits until the log is durable
		installed = make(chan struct{}) // the manifest is durable
		syncing   = make(chan struct{}) // the log may be
		done      = make(chan struct{})
	)
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	p.tune.Between = func(where string) {
		if where == "deletions" && flushing.Load() {
			begun.Do(func() { close(reading); <-moved })
		}
		if !armed.Load() {
			return
		}
		switch where {
		case "settling":
			close(settling)
		case "install":
			close(installed)
		}
	}
	p.tune.Stepped = func() {
		if armed.Load() {
			moving.Do(func() { close(moved); <-recording })
		}
	}
	e := p.open(t)
	push(t, e, "X", time.Hour)
	push(t, e, "Z", time.Hour)
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "Z"}}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync && filepath.Base(filepath.Dir(c.Name)) == "log" && armed.Load() {
			<-syncing
		}
		return nil
	})
	flushing.Store(true)
	go func() {
		defer close(done)
		if err := e.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	<-reading
	push(t, e, "Y", time.Hour) // all that is in the log is durable
	armed.Store(true)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, err := e.Reschedule(t.Context(), engine.Ref{Queue: "q", Key: "X"}, engine.When{In: time.Minute})
		if err != nil {
			t.Error(err)
		}
	}()
	<-moved
	close(recording)
	select {
	case <-installed:
	case <-settling: // as it should
	}
	after := p
	after.fs = d.Crash(disktest.Nothing())
	after.tune.Stepped = nil
	close(syncing)
	<-answered
	<-done
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = after.open(t)
	if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "X"}); err != nil {
		t.Errorf("the message is lost: %v", err)
	} else if i.State != engine.Scheduled {
		t.Errorf("the message is %v", i.State)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDeathsOutliveAFlushThatFailed cancels a message of an sstable, and has each call of the disk in turn fail that the
// next flush makes. The flush after that lets go of the log that tells of the cancel: the message does not come back
// when the store is opened again.
func TestDeathsOutliveAFlushThatFailed(t *testing.T) {
	failed := 0
	for n, more := 1, true; more; n++ {
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet, RetryFor: -1}, diskengine.Tune{SegmentBytes: 8 << 10, SpanBytes: 1 << 30}}
		e := p.open(t)
		pushKeys(t, e, "cancelled", "stays")
		must(t, e.Flush(t.Context()))
		errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "cancelled"}})
		must(t, errors.Join(err, errs[0]))
		pushKeys(t, e, "new")
		var left atomic.Int64
		left.Store(int64(n))
		d.Hook(func(c disktest.Call) error {
			if left.Add(-1) == 0 {
				return syscall.EIO
			}
			return nil
		})
		if err := e.Flush(t.Context()); err != nil {
			failed++
		}
		more = left.Load() <= 0
		d.Hook(nil)
		_ = e.Flush(t.Context()) // unless the store has stopped
		p.fs = d.Kill()
		_ = e.Close()
		e = p.open(t)
		has, _ := whatLives(t, e)
		if keys := slices.Sorted(maps.Keys(has)); !slices.Equal(keys, []string{"new", "stays"}) {
			t.Errorf("call %d of the flush failed, and then there are %v", n, keys)
		}
		must(t, e.Close())
	}
	if failed < 5 {
		t.Errorf("%d flushes failed", failed)
	}
}

// push pushes a message with a key to queue q.
func push(t testing.TB, e engine.Engine, key string, in time.Duration) {
	t.Helper()
	r, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Key: key, Due: engine.When{In: in}}})
	if err != nil || r[0].Err != nil {
		t.Fatal(r, err)
	}
}
