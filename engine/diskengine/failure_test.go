package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestFailureAtEachOperation lets the k-th operation on the file system fail, for
// every k until the history gets through: alone, or at some k with all that follow
// it. The engine then goes on or stops with an error, the process lives, Close ends, and
// what was answered is there when the directory is opened again.
func TestFailureAtEachOperation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		only bool // the k-th alone
		step int
	}{
		{"one fails", syscall.EIO, true, 1},
		{"all fail from then on", syscall.EIO, false, 3},
		{"the disk is full", syscall.ENOSPC, false, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			stopped := 0
			for k, through := 1, false; !through; k += c.step {
				clock := enginetest.NewClock()
				mem := vfs.NewMem()
				l := &ledger{fates: map[string]fate{}}
				var mu sync.Mutex
				n := 0
				fs := &faultFS{FS: mem, before: func(string, string) error {
					mu.Lock()
					defer mu.Unlock()
					if n++; n == k || n > k && !c.only {
						return fmt.Errorf("operation %d: %w", n, c.err)
					}
					return nil
				}}
				cfg := diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20, RetryFor: -1}
				e, err := diskengine.Open("data", &cfg)
				if err == nil {
					if err = l.history(t, e); err != nil && !errors.Is(err, engine.ErrUnavailable) {
						t.Fatalf("operation %d failed: %v", k, err)
					}
					if err != nil {
						stopped++
					}
					if err := e.Close(); err != nil && !errors.Is(err, c.err) {
						t.Fatalf("operation %d failed, close: %v", k, err)
					}
				}
				mu.Lock()
				through = n < k
				mu.Unlock()
				cfg.FS = mem
				if e, err = diskengine.Open("data", &cfg); err != nil {
					t.Fatalf("operation %d failed, opening again: %v", k, err)
				}
				check(t, e, l.fates, false)
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if stopped == 0 {
				t.Error("no failure stopped the engine")
			}
		})
	}
}

// TestLogsThatCannotBeCreated takes away what a new log needs: for good, which
// stops the engine, and for a while, which nobody notices.
func TestLogsThatCannotBeCreated(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("again=%t", again), func(t *testing.T) {
			var mu sync.Mutex
			broken, refused := false, 0
			fs := &faultFS{FS: vfs.NewMem(), before: func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if !broken || op != "create" && op != "reuse" || !strings.HasSuffix(name, ".log") {
					return nil
				}
				if refused++; again && refused > 3 {
					return nil
				}
				return syscall.EMFILE
			}}
			p := place{"data", diskengine.Config{FS: fs, Logger: quiet, MemTableBytes: smallTable, MinFreeBytes: -1, RetryFor: time.Minute}}
			if !again {
				p.cfg.RetryFor = 10 * time.Millisecond
			}
			e := p.open(t)
			mu.Lock()
			broken = true
			mu.Unlock()
			kept, err := fill(t, e, 200)
			if again && (err != nil || refused <= 3) {
				t.Errorf("refused %d times: %v", refused, err)
			}
			if !again && (!errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.EMFILE)) {
				t.Errorf("push: %v", err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			broken = false
			mu.Unlock()
			holds(t, p, kept)
		})
	}
}

// TestTablesThatCannotBeWritten lets every table fail: the engine keeps trying for
// the time it is given, then stops; nobody hangs, and nothing answered is lost.
func TestTablesThatCannotBeWritten(t *testing.T) {
	var mu sync.Mutex
	broken, refused := true, 0
	fs := &faultFS{FS: vfs.NewMem(), before: func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && strings.HasSuffix(name, ".sst") {
			refused++
			return syscall.ENOSPC
		}
		return nil
	}}
	p := place{"data", diskengine.Config{FS: fs, Logger: quiet, MemTableBytes: smallTable, MinFreeBytes: -1, BallastBytes: -1, RetryFor: 300 * time.Millisecond}}
	e := p.open(t)
	kept, err := fill(t, e, 2000)
	if !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("push: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	if refused < 3 || refused > 50 {
		t.Errorf("tables were tried %d times", refused)
	}
	broken = false
	mu.Unlock()
	holds(t, p, kept)
}

// smallTable makes a few dozen messages rotate the log and flush.
const smallTable = 64 << 10

// fill pushes up to n messages, each in a call of its own, and returns the keys of
// those that were kept.
func fill(t *testing.T, e engine.Engine, n int) (kept []string, err error) {
	for i := range n {
		m := message("q", fmt.Sprint("fill-", i), time.Hour)
		m.Body = make([]byte, 2000)
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		if err != nil {
			return kept, err
		}
		kept = append(kept, m.Key)
	}
	return kept, nil
}

// holds opens an engine again and looks for messages.
func holds(t *testing.T, p place, keys []string) {
	t.Helper()
	e := p.open(t)
	defer e.Close()
	for _, key := range keys {
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key}); err != nil {
			t.Fatalf("%s after opening again: %v", key, err)
		}
	}
}
