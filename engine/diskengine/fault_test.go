package diskengine_test

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func TestFullDiskRefusesPushesOnly(t *testing.T) {
	clock := enginetest.NewClock()
	var free atomic.Uint64
	free.Store(1 << 40)
	fs := &faultFS{FS: vfs.NewMem(), before: func(string, string) error { return nil },
		usage: func() (vfs.DiskUsage, error) { return vfs.DiskUsage{AvailBytes: free.Load()}, nil }}
	e := place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet}}.open(t)
	defer e.Close()
	push := func(key string) error {
		r, err := e.Push(t.Context(), []engine.Message{message("q", key, 0)})
		if err != nil {
			t.Fatal(err)
		}
		return r[0].Err
	}
	if err := errors.Join(push("a"), push("b")); err != nil {
		t.Fatal(err)
	}
	ready := e.(engine.Readier).Ready
	if err := ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	free.Store(1 << 20)
	clock.Advance(time.Second)
	if err := ready(t.Context()); !errors.Is(err, engine.ErrNoSpace) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("ready on a full disk: %v", err)
	}
	if err := push("c"); !errors.Is(err, engine.ErrNoSpace) || !errors.Is(err, engine.ErrLimit) {
		t.Errorf("push on a full disk: %v", err)
	}
	if _, err := e.(engine.AtomicPusher).PushAtomic(t.Context(), []engine.Message{message("q", "c", 0)}); !errors.Is(err, engine.ErrNoSpace) {
		t.Errorf("atomic push on a full disk: %v", err)
	}
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatalf("lease on a full disk: %v, %v", g, err)
	}
	if s, err := e.Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}}); err != nil || s[0].Err != nil {
		t.Errorf("ack on a full disk: %v, %v", s, err)
	}
	if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "b"}}); err != nil || errs[0] != nil {
		t.Errorf("cancel on a full disk: %v, %v", errs, err)
	}
	free.Store(1 << 40)
	clock.Advance(time.Second)
	if err := push("c"); err != nil {
		t.Errorf("push after space was freed: %v", err)
	}
}

// TestFailedWriteStops lets every write from some moment on fail: calls then fail
// with the cause, none hangs, and what was answered is there after opening anew.
func TestFailedWriteStops(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			clock := enginetest.NewClock()
			var broken atomic.Bool
			mem := vfs.NewMem()
			fs := &faultFS{FS: mem, before: func(o, _ string) error {
				if broken.Load() && o == op {
					return syscall.ENOSPC
				}
				return nil
			}}
			p := place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, RetryFor: -1}}
			e := p.open(t)
			push := func(key string) error {
				r, err := e.Push(t.Context(), []engine.Message{message("q", key, time.Hour)})
				if err != nil {
					return err
				}
				return r[0].Err
			}
			if err := push("a"); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			done := make(chan error)
			for _, key := range []string{"b", "c", "d", "e"} {
				go func() { done <- push(key) }()
			}
			for range 4 {
				if err := <-done; !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("push: %v", err)
				}
			}
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("get: %v", err)
			}
			if err := e.(engine.Readier).Ready(t.Context()); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "open it again") {
				t.Errorf("ready: %v", err)
			}
			broken.Store(false)
			if err := e.Close(); err != nil {
				t.Logf("close: %v", err)
			}
			p.cfg.FS = mem
			e = p.open(t)
			defer e.Close()
			if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err != nil {
				t.Errorf("after opening anew: %v", err)
			}
		})
	}
}

// TestFailedCloseSaysSo has a disk fail that nobody needs any more but Close, which says
// so, once; what was answered is there.
func TestFailedCloseSaysSo(t *testing.T) {
	var broken atomic.Bool
	mem := vfs.NewMem()
	fs := &faultFS{FS: mem, before: func(op, name string) error {
		if broken.Load() && op == "sync" && strings.HasSuffix(name, ".log") {
			return syscall.EIO
		}
		return nil
	}}
	p := place{"data", diskengine.Config{FS: fs, Logger: quiet}}
	e := p.open(t)
	if _, err := e.Push(t.Context(), []engine.Message{message("q", "a", 0)}); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if err := e.Close(); !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		t.Errorf("close: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	p.cfg.FS = mem
	holds(t, p, []string{"a"})
}

func TestOpenRefuses(t *testing.T) {
	open := func(fs vfs.FS) error {
		e, err := diskengine.Open("data", &diskengine.Config{FS: fs, Logger: quiet})
		if err == nil {
			t.Cleanup(func() { _ = e.Close() })
		}
		return err
	}
	with := func(name, text string) vfs.FS {
		fs := vfs.NewMem()
		if err := fs.MkdirAll("data", 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte(text))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return fs
	}
	inUse := vfs.NewMem()
	if err := open(inUse); err != nil {
		t.Fatal(err)
	}
	readOnly := &faultFS{FS: vfs.NewMem(), before: func(string, string) error { return os.ErrPermission }}
	for _, c := range []struct {
		name string
		fs   vfs.FS
		err  error
		says string
	}{
		{"a directory of something else", with("notes.txt", "milk"), engine.ErrInvalid, "notes.txt"},
		{"an older format", with("TARRY", "tarry disk 1\n"), engine.ErrInvalid, "older release"},
		{"a newer format", with("TARRY", "tarry disk 99\n"), engine.ErrInvalid, "newer release"},
		{"a marker that is none", with("TARRY", "tarry disk 01\n"), engine.ErrInvalid, "marker"},
		{"a directory in use", inUse, engine.ErrUnavailable, "pid "},
		{"a read-only directory", readOnly, engine.ErrInvalid, "cannot be written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := open(c.fs)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q", err)
			}
		})
	}
}

func TestURL(t *testing.T) {
	dir := t.TempDir()
	for url, ok := range map[string]bool{
		"disk://" + dir + "/a": true, "disk:" + dir + "/b": true,
		"disk:": false, "disk://host/x": false, "disk:x?sync=off": false, "disk:x#y": false,
	} {
		e, err := engine.Open(t.Context(), url)
		if (err == nil) != ok || err != nil && !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
