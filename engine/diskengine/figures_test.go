package diskengine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// What is pushed is synced, flushed and merged, and each shows.
func TestFiguresOfWrites(t *testing.T) {
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 3, BlockBytes: 512}}.open(t)
	defer e.Close()
	is := func(name, label string) float64 { t.Helper(); return enginetest.FigureOf(t, e, name, label) }
	if n := is("disk_written_bytes", "sstable"); n != 0 {
		t.Errorf("%v bytes of sstables were written before there was one", n)
	}
	synced, logged := is("disk_sync_seconds", ""), is("disk_written_bytes", "log")
	if _, err := fill(t, e, "q", 50, time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := is("disk_sync_seconds", ""); n <= synced {
		t.Errorf("%v syncs after %v", n, synced)
	}
	if n := is("disk_written_bytes", "log"); n < logged+50_000 {
		t.Errorf("%v bytes of the log after %v", n, logged)
	}
	if n := is("disk_memtable_messages", ""); n != 50 {
		t.Errorf("%v are in no sstable", n)
	}
	if n := is("disk_log_bytes", ""); n < 50_000 {
		t.Errorf("the log holds %v bytes", n)
	}
	taken := is("disk_memory_bytes", "memtable")
	if taken < 50_000 {
		t.Errorf("they take %v bytes", taken)
	}
	for _, queue := range []string{"q", "r", "s"} {
		if queue != "q" {
			if _, err := fill(t, e, queue, 50, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, e, lease(t, e, "r", 20), engine.Ack)
	lease(t, e, "s", 10)
	for name, want := range map[string]float64{"disk_memtable_messages": 0, "disk_sealed_memtables": 0, "disk_background_failures": 0, "disk_waiting_pushes": 0, "disk_flushes": 3} {
		if n := is(name, ""); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	if alive, gone := is("disk_sstable_entries", "alive"), is("disk_sstable_entries", "gone"); alive != 130 || gone != 20 {
		t.Errorf("%v are alive in sstables, and %v gone", alive, gone)
	}
	if err := e.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive, gone, tables := is("disk_sstable_entries", "alive"), is("disk_sstable_entries", "gone"), is("disk_sstables", "live"); alive != 130 || gone != 0 || tables != 1 {
		t.Errorf("%v are alive in %v sstables, and %v gone", alive, tables, gone)
	}
	if n := is("disk_written_bytes", "sstable"); n < 280_000 {
		t.Errorf("%v bytes were written to sstables", n)
	}
	for name, label := range map[string]string{"disk_merges": "", "disk_used_bytes": "", "disk_free_bytes": "", "disk_memory_bytes": "sstables"} {
		if n := is(name, label); n <= 0 {
			t.Errorf("%s is %v", name, n)
		}
	}
	reads(t, e, "disk_memory_bytes", "ready", positive)
}

// A disk that fails stops the store, and it says so, also once it is closed.
func TestFiguresOfFailures(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
	if err := e.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads(t, e, "disk_stopped", "", none)
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Sync {
			return syscall.EIO
		}
		return nil
	})
	if err := pushAll(t, e, message("q", "a", 0)); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("push: %v", err)
	}
	if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		t.Errorf("ready: %v", err)
	}
	reads(t, e, "disk_stopped", "", positive)
	_ = e.Close() // says why it stopped
	reads(t, e, "disk_stopped", "", positive)
	if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("ready after close: %v", err)
	}
}

// An sstable that cannot be written is counted, and what was in it stays.
func TestFiguresOfBackgroundWork(t *testing.T) {
	d := disktest.New(nil)
	var broken atomic.Bool
	d.Hook(func(c disktest.Call) error {
		if broken.Load() && c.Op == disktest.Create && strings.HasSuffix(c.Name, ".run") {
			return syscall.EMFILE
		}
		return nil
	})
	e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 16 << 10}}.open(t)
	defer e.Close()
	broken.Store(true)
	if _, err := fill(t, e, "q", 50, time.Hour); err != nil {
		t.Fatal(err)
	}
	reads(t, e, "disk_background_failures", "", positive)
	broken.Store(false)
	reads(t, e, "disk_flushes", "", positive)
	reads(t, e, "disk_memtable_messages", "", none)
}

// While the disk hangs the figures are there at once and say for how long it has.
func TestFiguresOfAHangingDisk(t *testing.T) { synctest.Test(t, figuresHanging) }

func figuresHanging(t *testing.T) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
	defer e.Close()
	on := make(chan struct{})
	d.Hook(func(disktest.Call) error { <-on; return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Push(ctx, []engine.Message{message("q", "a", 0)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if n := enginetest.FigureOf(t, e, "disk_operation_seconds", ""); n != 0.02 {
		t.Errorf("after 20 ms the disk hangs for %v s", n)
	}
	close(on)
	reads(t, e, "disk_operation_seconds", "", func(v float64) bool { return v < 0.01 })
}
