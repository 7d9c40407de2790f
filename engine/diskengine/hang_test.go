package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// hanging is a file system whose logs can be made to hang as they are written or
// synced.
type hanging struct {
	faultFS
	mu    sync.Mutex
	gate  chan struct{} // nil: open
	syncs bool          // only syncs hang
	wrote int           // writes to logs meanwhile
	stuck chan struct{} // gets one when an operation hangs
}

func newHanging() *hanging {
	h := &hanging{stuck: make(chan struct{}, 1)}
	h.faultFS = faultFS{FS: vfs.NewMem(), before: func(op, name string) error {
		h.mu.Lock()
		gate, syncs := h.gate, h.syncs
		if gate != nil && op == "write" && filepath.Ext(name) == ".log" {
			h.wrote++
		}
		h.mu.Unlock()
		if gate != nil && (op == "sync" || op == "write" && !syncs) && filepath.Ext(name) == ".log" {
			select {
			case h.stuck <- struct{}{}:
			default:
			}
			<-gate
		}
		return nil
	}}
	return h
}

func (h *hanging) hang() (release func()) {
	gate := make(chan struct{})
	set := func(g chan struct{}) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.gate = g
	}
	set(gate)
	return sync.OnceFunc(func() {
		set(nil)
		close(gate)
	})
}

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestHangingDisk makes every call while no sync of the log returns: those that
// write return when their context ends, and do not claim to have failed; those that
// rest on what is durable go on. Close says what hangs.
func TestHangingDisk(t *testing.T) {
	fs := newHanging()
	p := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1, CloseTimeout: 50 * time.Millisecond}}
	e := p.open(t)
	var msgs []engine.Message
	for i := range 10 {
		msgs = append(msgs, message("q", fmt.Sprint("q", i), 0), message("quiet", fmt.Sprint("k", i), time.Hour))
	}
	if _, err := e.Push(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 2 {
		t.Fatal(err, g)
	}
	ready := engine.Ref{Queue: "q", Key: "q5"}
	for _, l := range g.Queues[0].Messages { // which waits for the sync of the leases: that is not the one to hang
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID}); err != nil {
			t.Fatal(err)
		}
	}

	release := fs.hang()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-fs.stuck
		cancel()
	}()
	if _, err := e.Push(ctx, []engine.Message{message("q", "first", 0)}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("the first push: %v", err)
	}
	for what, call := range map[string]func(ctx context.Context) error{
		"push": func(ctx context.Context) error {
			_, err := e.Push(ctx, []engine.Message{message("q", "new", 0)})
			return err
		},
		"atomic push": func(ctx context.Context) error {
			_, err := e.(engine.AtomicPusher).PushAtomic(ctx, []engine.Message{message("new queue", "new", 0)})
			return err
		},
		"settle": func(ctx context.Context) error {
			_, err := e.Settle(ctx, []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}})
			return err
		},
		"cancel": func(ctx context.Context) error {
			_, err := e.Cancel(ctx, []engine.Ref{{Queue: "q", Key: "q6"}})
			return err
		},
		"reschedule": func(ctx context.Context) error {
			_, err := e.Reschedule(ctx, ready, engine.When{In: time.Hour})
			return err
		},
		"lease": func(ctx context.Context) error {
			_, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, Remote: true}})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := e.(engine.Claimer).Claim(ctx, engine.Ref{Queue: "q", Key: "q9"}, engine.Want{Remote: true})
			return err
		},
		"pause": func(ctx context.Context) error { return e.(engine.Pauser).Pause(ctx, "other", time.Hour) },
		"purge": func(ctx context.Context) error {
			_, err := e.(engine.Purger).Purge(ctx, "q", engine.PurgeDead)
			return err
		},
	} {
		if err := call(brief(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, call := range map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := e.Get(ctx, engine.Ref{Queue: "quiet", Key: "k1"})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := e.(engine.Lister).List(ctx, engine.ListQuery{Queue: "quiet", State: engine.Scheduled, Limit: 10})
			return err
		},
		"queue": func(ctx context.Context) error { _, err := e.(engine.Counter).Queue(ctx, "quiet"); return err },
		"forecast": func(ctx context.Context) error {
			_, err := e.(engine.Forecaster).Forecast(ctx, "quiet", time.Minute, time.Hour)
			return err
		},
	} {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	if err := e.Close(); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("close: %v", err)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "quiet", Key: "k1"}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
	release()
	closed(t, e)
	p.cfg.FS = fs.FS
	holds(t, p, []string{"q0", "q2", "q3"}[:0])
}

// closed waits until an engine has closed.
func closed(t *testing.T, e engine.Engine) {
	t.Helper()
	for t.Context().Err() == nil {
		if e.Close() == nil {
			return
		}
	}
}

// TestHangingRotation pushes until the log would be rotated, which blocks whoever
// has the locks: the callers still leave when their contexts end.
func TestHangingRotation(t *testing.T) {
	fs := newHanging()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1, MemTableBytes: smallTable}}.open(t)
	release := fs.hang()
	defer release()
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			m := message("q", fmt.Sprint(i), time.Hour)
			m.Body = make([]byte, 3000)
			if _, err := e.Push(brief(t), []engine.Message{m}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("push: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := e.Get(brief(t), engine.Ref{Queue: "other", Key: "k"}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	release()
	closed(t, e)
}

// TestLeaseWithoutSync leases while no sync of the log returns: that is answered once it
// is written, but nobody is told of it who asks for the message, and what comes after it
// waits.
func TestLeaseWithoutSync(t *testing.T) {
	fs := newHanging()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1}}.open(t)
	if _, err := e.Push(t.Context(), []engine.Message{message("q", "a", 0), message("q", "b", 0)}); err != nil {
		t.Fatal(err)
	}
	fs.syncs = true
	release := fs.hang()
	defer release()
	want := []engine.Want{{Queue: "q", Max: 1, Remote: true}}
	g, err := e.Lease(t.Context(), want)
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatal(err, g)
	}
	leased := g.Queues[0].Messages[0]
	<-fs.stuck
	written := func() int {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		return fs.wrote
	}
	before := written()
	keep := message("q", leased.Key, 0)
	keep.OnConflict = engine.Keep
	for _, call := range []struct { // those that only look come first: what writes would hold them up
		what string
		do   func(ctx context.Context) error
	}{
		{"get", func(ctx context.Context) error {
			_, err := e.Get(ctx, engine.Ref{Queue: "q", Key: leased.Key})
			return err
		}},
		{"keep", func(ctx context.Context) error { _, err := e.Push(ctx, []engine.Message{keep}); return err }},
		{"refused atomic push", func(ctx context.Context) error {
			_, err := e.(engine.AtomicPusher).PushAtomic(ctx, []engine.Message{message("q", leased.Key, 0)})
			return err
		}},
		{"lease", func(ctx context.Context) error { _, err := e.Lease(ctx, want); return err }},
		{"ack", func(ctx context.Context) error {
			_, err := e.Settle(ctx, []engine.Settlement{{Token: leased.Token, Do: engine.Ack}})
			return err
		}},
	} {
		if err := call.do(brief(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", call.what, err)
		}
	}
	if n := written(); n != before { // it would claim that what is behind it is synced
		t.Errorf("%d writes overtook a sync", n-before)
	}
	release()
	closed(t, e)
}

// TestLeasesOfManyQueuesThatAreNotWritten leases of two queues at once while no write of the
// log returns: one lease for another process is waited for, wherever it stands, and leases
// that stay in this one are not.
func TestLeasesOfManyQueuesThatAreNotWritten(t *testing.T) {
	for _, remote := range [][2]bool{{true, false}, {false, true}, {true, true}, {false, false}} {
		fs := newHanging()
		e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1}}.open(t)
		if _, err := e.Push(t.Context(), []engine.Message{message("a", "k", 0), message("b", "k", 0)}); err != nil {
			t.Fatal(err)
		}
		release := fs.hang()
		ctx, waits := t.Context(), remote[0] || remote[1]
		if waits {
			ctx = brief(t)
		}
		g, err := e.Lease(ctx, []engine.Want{{Queue: "a", Max: 1, Remote: remote[0]}, {Queue: "b", Max: 1, Remote: remote[1]}})
		if errors.Is(err, context.DeadlineExceeded) != waits || !waits && err != nil {
			t.Errorf("remote %v: %v, %v", remote, g, err)
		}
		release()
		closed(t, e)
	}
}

// TestLeaseLeft leaves a lease that the disk holds up: what it brings late is ready
// again, with no attempt counted.
func TestLeaseLeft(t *testing.T) {
	fs := newHanging()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1}}.open(t)
	defer e.Close()
	if _, err := e.Push(t.Context(), []engine.Message{message("q", "a", 0), message("q", "b", 0)}); err != nil {
		t.Fatal(err)
	}
	release := fs.hang()
	defer release()
	if _, err := e.Lease(brief(t), []engine.Want{{Queue: "q", Max: 1, Remote: true}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := e.(engine.Claimer).Claim(brief(t), engine.Ref{Queue: "q", Key: "b"}, engine.Want{Remote: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	hint := make(chan struct{}, 100)
	defer e.Watch(func(string) { hint <- struct{}{} })()
	release()
	for leased := 0; leased < 2; {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2}})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range g.Queues[0].Messages {
			if leased++; l.Attempt != 1 {
				t.Errorf("%s has attempt %d", l.Key, l.Attempt)
			}
		}
		if leased < 2 {
			<-hint
		}
	}
}

// TestCallsLeft leaves as many calls as may be left: then no more begin.
func TestCallsLeft(t *testing.T) {
	fs := newHanging()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1}}.open(t)
	release := fs.hang()
	defer release()
	var refused atomic.Int64
	for refused.Load() == 0 {
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				_, err := e.Push(brief(t), []engine.Message{message("q", "", time.Hour)})
				if errors.Is(err, engine.ErrUnavailable) {
					refused.Add(1)
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("push: %v", err)
				}
			})
		}
		wg.Wait()
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "1"}); !errors.Is(err, engine.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}
	release()
	closed(t, e)
}

// TestCountsOfALeaseLeft leaves a lease that dropped something: the next one tells of
// it.
func TestCountsOfALeaseLeft(t *testing.T) {
	fs := newHanging()
	clock := enginetest.NewClock()
	e := place{"data", diskengine.Config{FS: fs, Logger: quiet, MinFreeBytes: -1, Now: clock.Now}}.open(t)
	defer e.Close()
	stale := message("q", "a", 0)
	stale.ExpireAfter = time.Second
	if _, err := e.Push(t.Context(), []engine.Message{stale, message("q", "b", 0)}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	release := fs.hang()
	defer release()
	if _, err := e.Lease(brief(t), []engine.Want{{Queue: "q", Max: 5, Remote: true}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	hint := make(chan struct{}, 100)
	defer e.Watch(func(string) { hint <- struct{}{} })()
	release()
	for {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Queues[0].Messages) > 0 {
			if g.Queues[0].Expired != 1 {
				t.Errorf("%d were dropped, want 1", g.Queues[0].Expired)
			}
			return
		}
		<-hint
	}
}
