package diskengine_test

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestFailureAmidManyQueues lets the disk fail from its k-th write or sync on, for every
// k, while calls of more queues than a batch takes are under way: no call hangs, what
// was answered is there when the directory is opened again, and of each queue all of a
// call or nothing.
func TestFailureAmidManyQueues(t *testing.T) {
	const queues, each = 300, 2
	names := make([]string, queues)
	for i := range names {
		names[i] = fmt.Sprint("q", i)
	}
	var wants []engine.Want
	for _, name := range names {
		wants = append(wants, engine.Want{Queue: name, Max: each, TTR: time.Hour, Remote: true})
	}
	amid := 0 // failures that left some queues changed and others not
	t.Parallel()
	for k, through := 1, false; !through; k++ {
		clock, mem := enginetest.NewClock(), vfs.NewMem()
		var mu sync.Mutex
		n, began := 0, false
		fs := &faultFS{FS: mem, before: func(op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if began && (op == "write" || op == "sync") {
				if n++; n >= k {
					return syscall.EIO
				}
			}
			return nil
		}}
		cfg := diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MinFreeBytes: -1, BallastBytes: -1, RetryFor: -1}
		e := place{"data", cfg}.open(t)
		mu.Lock()
		began = true
		mu.Unlock()
		pushed, leased, settled, err := tellMany(t, e, names, each, wants)
		if err != nil && !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("write %d failed: %v", k, err)
		}
		if err := e.Close(); err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("write %d failed, close: %v", k, err)
		}
		mu.Lock()
		through = n < k
		mu.Unlock()
		cfg.FS = mem
		e = place{"data", cfg}.open(t)
		kinds := make(map[engine.QueueInfo]int)
		for q, name := range names {
			info, err := e.(engine.Counter).Queue(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			is := engine.QueueInfo{Ready: info.Ready, Leased: info.Leased, Dead: info.Dead}
			kinds[is]++
			switch {
			case is == engine.QueueInfo{Dead: each}: // settled
			case is == engine.QueueInfo{Leased: each} && !settled:
			case is == engine.QueueInfo{Ready: each} && !leased:
			case is == engine.QueueInfo{} && !pushed:
			default:
				t.Fatalf("write %d failed, pushed %t, leased %t, settled %t: %s has %+v", k, pushed, leased, settled, name, is)
			}
			if (q+k)%6 != 0 { // each time others of them are looked for by their keys
				continue
			}
			for i := range is.Ready + is.Leased + is.Dead {
				if _, err := e.Get(t.Context(), engine.Ref{Queue: name, Key: fmt.Sprint(i)}); err != nil {
					t.Fatalf("write %d failed, %s: %v", k, name, err)
				}
			}
		}
		if len(kinds) > 1 {
			amid++
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d failures came amid a call", amid)
}

// tellMany pushes, leases and buries all messages of many queues, a call each, and says
// which have been answered.
func tellMany(t *testing.T, e engine.Engine, names []string, each int, wants []engine.Want) (pushed, leased, settled bool, err error) {
	var msgs []engine.Message
	for i := range each {
		for _, name := range names {
			msgs = append(msgs, message(name, fmt.Sprint(i), 0))
		}
	}
	if _, err := e.Push(t.Context(), msgs); err != nil {
		return false, false, false, err
	}
	g, err := e.Lease(t.Context(), wants)
	if err != nil {
		return true, false, false, err
	}
	var ends []engine.Settlement
	for _, q := range g.Queues {
		if q.Err != nil {
			t.Error(q.Err)
		}
		for _, l := range q.Messages {
			ends = append(ends, engine.Settlement{Token: l.Token, Do: engine.Bury})
		}
	}
	if len(ends) != len(msgs) {
		t.Errorf("leased %d of %d", len(ends), len(msgs))
	}
	if _, err := e.Settle(t.Context(), ends); err != nil {
		return true, true, false, err
	}
	return true, true, true, nil
}
