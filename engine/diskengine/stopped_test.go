package diskengine_test

import (
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
)

// ofLog reports whether a call is about a segment of the log.
func ofLog(c disktest.Call) bool { return strings.HasSuffix(c.Name, ".log") }

// TestFailedWriteStops lets every write, or sync, from some moment on fail: all who wait are told with the
// cause, what is asked later fails too, and what was answered is there when the store is opened again.
func TestFailedWriteStops(t *testing.T) {
	for _, op := range []string{disktest.Write, disktest.Sync} {
		t.Run(op, func(t *testing.T) {
			d := disktest.New(nil)
			p := place{d, "data", diskengine.Config{Logger: quiet, RetryFor: -1}, diskengine.Tune{SegmentBytes: 64 << 10}}
			e := p.open(t)
			if err := pushAll(t, e, message("q", "a", time.Hour)); err != nil {
				t.Fatal(err)
			}
			d.Hook(func(c disktest.Call) error {
				if c.Op == op {
					return syscall.EIO
				}
				return nil
			})
			done := make(chan error)
			for _, key := range []string{"b", "c", "d", "e"} {
				go func() {
					_, err := e.Push(t.Context(), []engine.Message{message("q", key, time.Hour)})
					done <- err
				}()
			}
			for range 4 {
				if err := <-done; !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
					t.Errorf("push: %v", err)
				}
			}
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("get: %v", err)
			}
			if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "open it again") {
				t.Errorf("ready: %v", err)
			}
			d.Hook(nil)
			if err := e.Close(); err != nil {
				t.Logf("close: %v", err)
			}
			e = p.open(t)
			defer e.Close()
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err != nil {
				t.Errorf("after opening again: %v", err)
			}
		})
	}
}

// TestFailedCloseSaysSo has a disk fail that nobody waits for but Close, which says so; what was answered
// is there.
func TestFailedCloseSaysSo(t *testing.T) {
	d := disktest.New(nil)
	p := place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
	e := p.open(t)
	if err := pushAll(t, e, message("q", "a", 0)); err != nil {
		t.Fatal(err)
	}
	d.Hook(func(c disktest.Call) error {
		if (c.Op == disktest.Sync || c.Op == disktest.Write) && ofLog(c) {
			return syscall.EIO
		}
		return nil
	})
	if err := e.Close(); !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	d.Hook(nil)
	e = p.open(t)
	defer e.Close()
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err != nil {
		t.Error(err)
	}
}

// TestSegmentsThatCannotBeMade takes away the file descriptors that new segments of the log need: for good,
// which stops the store once it has tried for as long as it is to, and for a while, which nobody notices.
func TestSegmentsThatCannotBeMade(t *testing.T) {
	for name, refusals := range map[string]int64{"for a while": 4, "for good": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := disktest.New(nil)
				p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, RetryFor: 5 * time.Second}, diskengine.Tune{SegmentBytes: 32 << 10}}
				e := p.open(t)
				var refused atomic.Int64
				d.Hook(func(c disktest.Call) error {
					if (c.Op == disktest.Create || c.Op == disktest.Rename) && ofLog(c) && refused.Add(1) <= refusals {
						return syscall.EMFILE
					}
					return nil
				})
				kept, err := fill(t, e, "q", 3000, time.Hour)
				if forGood := refusals > 1000; forGood && (!errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EMFILE)) || !forGood && (err != nil || refused.Load() <= refusals) {
					t.Errorf("refused %d times, %d are kept: %v", refused.Load(), len(kept), err)
				}
				d.Hook(nil)
				if err := e.Close(); err != nil && refusals < 1000 {
					t.Error(err)
				}
				e = p.open(t)
				holdKeys(t, e, "q", kept)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestDirectoriesThatCannotBeOpened takes away the file descriptor that it takes to make the names in a
// directory durable: for a while again and again, which nobody notices, and for good, which stops the store
// once it has tried for as long as it is to.
func TestDirectoriesThatCannotBeOpened(t *testing.T) {
	for name, forGood := range map[string]bool{"for a while": false, "for good": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := disktest.New(nil)
				p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, RetryFor: 5 * time.Second},
					diskengine.Tune{SegmentBytes: 32 << 10, SpanBytes: 64 << 10}}
				e := p.open(t)
				var refused atomic.Int64
				d.Hook(func(c disktest.Call) error {
					if c.Op == disktest.SyncDir && (forGood || refused.Add(1)%5 != 0) {
						return syscall.EMFILE
					}
					return nil
				})
				begun := time.Now()
				kept, err := fill(t, e, "q", 3000, time.Hour)
				switch took := time.Since(begun); {
				case forGood && (!errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EMFILE) || took < 5*time.Second):
					t.Errorf("%d are kept after %v: %v", len(kept), took, err)
				case !forGood && (err != nil || refused.Load() < 50):
					t.Errorf("refused %d times, %d are kept: %v", refused.Load(), len(kept), err)
				}
				if err := e.Close(); err != nil && !forGood {
					t.Error(err)
				}
				d.Hook(nil)
				e = p.open(t)
				holdKeys(t, e, "q", kept)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// holdKeys fails the test unless an engine has messages of such keys.
func holdKeys(t *testing.T, e engine.Engine, queue string, keys []string) {
	t.Helper()
	for _, key := range keys {
		if _, err := e.Get(t.Context(), engine.Ref{Queue: queue, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
}
