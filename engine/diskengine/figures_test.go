package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// grows returns a function that fails the test unless a figure has grown since.
func grows(t *testing.T, e engine.Engine, name, label string) func() {
	t.Helper()
	was := enginetest.FigureOf(t, e, name, label)
	return func() {
		t.Helper()
		if is := enginetest.FigureOf(t, e, name, label); is <= was {
			t.Errorf("%s of %q was %v and is %v", name, label, was, is)
		}
	}
}

// reads waits until a figure is what it is to be: sizes are as of a moment ago.
func reads(t *testing.T, e engine.Engine, name, label string, is func(float64) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		v := enginetest.FigureOf(t, e, name, label)
		if is(v) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s of %q is %v", name, label, v)
		}
	}
}

func positive(v float64) bool { return v > 0 }

// Pushes are written and synced, and when there are enough, flushed and merged.
func TestFiguresOfWrites(t *testing.T) {
	e := place{"data", diskengine.Config{FS: vfs.NewMem(), Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20}}.open(t)
	defer e.Close()
	synced, logged := grows(t, e, "disk_sync_seconds", ""), grows(t, e, "disk_written_bytes", "log")
	if _, err := e.Push(t.Context(), []engine.Message{message("q", "a", time.Hour)}); err != nil {
		t.Fatal(err)
	}
	synced()
	logged()
	reads(t, e, "disk_log_bytes", "", positive)
	reads(t, e, "disk_memory_bytes", "recent", positive)
	tables := grows(t, e, "disk_written_bytes", "table")
	if _, err := fill(t, e, 400); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"disk_flushes", "disk_compactions", "disk_used_bytes"} {
		reads(t, e, name, "", positive)
	}
	tables()
	held := 0.0
	reads(t, e, "disk_level_bytes", "0", func(float64) bool {
		for level := range 7 {
			held += enginetest.FigureOf(t, e, "disk_level_bytes", fmt.Sprint(level))
		}
		return held > 0
	})
}

// A disk that is full for a while has operations tried again, and one that fails stops the
// store.
func TestFiguresOfFailures(t *testing.T) {
	var fails atomic.Pointer[error]
	var left atomic.Int64
	var free atomic.Uint64
	free.Store(1 << 40)
	clock := enginetest.NewClock()
	fs := &faultFS{FS: vfs.NewMem(), before: func(op, name string) error {
		if err := fails.Load(); err != nil && strings.HasSuffix(name, ".log") && op == "write" && left.Add(-1) >= 0 {
			return *err
		}
		return nil
	}, usage: func() (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: free.Load()}, nil }}
	e := place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, BallastBytes: -1}}.open(t)
	push := func(key string) error {
		r, err := e.Push(t.Context(), []engine.Message{message("q", key, time.Hour)})
		if err == nil {
			err = r[0].Err
		}
		return err
	}
	fail := func(err error, times int64) {
		left.Store(times)
		fails.Store(&err)
	}
	tried := grows(t, e, "disk_retries", "")
	fail(syscall.ENOSPC, 3)
	if err := push("a"); err != nil {
		t.Fatal(err)
	}
	tried()
	none := func(v float64) bool { return v == 0 }
	reads(t, e, "disk_full", "", none)
	free.Store(1 << 20)
	clock.Advance(time.Second)
	if err := push("b"); !errors.Is(err, engine.ErrNoSpace) {
		t.Fatal(err)
	}
	reads(t, e, "disk_full", "", positive)
	reads(t, e, "disk_free_bytes", "", func(v float64) bool { return v == 1<<20 })
	free.Store(1 << 40)
	clock.Advance(time.Second)
	reads(t, e, "disk_stopped", "", none)
	fail(syscall.EIO, 1)
	if err := push("c"); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatal(err)
	}
	reads(t, e, "disk_stopped", "", positive)
	_ = e.Close()
	reads(t, e, "disk_stopped", "", positive)
}

// While the disk hangs the figures are there at once, and say for how long it has.
func TestFiguresOfAHangingDisk(t *testing.T) {
	fs := newHanging()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1, MemTableBytes: smallTable}}.open(t)
	release := fs.hang()
	defer release()
	var wg sync.WaitGroup
	for i := range 60 { // so that a new log is to be made, for which Pebble has all wait
		wg.Go(func() {
			m := message("q", fmt.Sprint(i), time.Hour)
			m.Body = make([]byte, 3000)
			_, _ = e.Push(brief(t), []engine.Message{m})
		})
	}
	wg.Wait()
	for range 5 {
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() { e.(engine.Measurer).Figures() })
		}
		asking.Wait() // the test hangs if one does
	}
	reads(t, e, "disk_operation_seconds", "", positive)
	release()
	reads(t, e, "disk_operation_seconds", "", func(v float64) bool { return v < 0.02 })
	closed(t, e)
}

// A table that cannot be written is counted.
func TestFiguresOfBackgroundWork(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	fs := &faultFS{FS: vfs.NewMem(), before: func(_, name string) error {
		if broken.Load() && strings.HasSuffix(name, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}}
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MemTableBytes: smallTable, MinFreeBytes: -1, BallastBytes: -1}}.open(t)
	defer e.Close()
	if _, err := fill(t, e, 60); err != nil {
		t.Fatal(err)
	}
	reads(t, e, "disk_background_failures", "", positive)
	broken.Store(false)
	reads(t, e, "disk_flushes", "", positive)
}

// What a scrape costs the engine.
func BenchmarkFigures(b *testing.B) {
	e := place{"data", diskengine.Config{FS: vfs.NewMem(), Logger: quiet}}.open(b)
	defer e.Close()
	m := e.(engine.Measurer)
	for b.Loop() {
		m.Figures()
	}
}
