package diskengine_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestFailureAmidManyQueues lets the disk fail from its k-th write or sync on, for each k, while calls of
// more queues than a step takes are under way: no call hangs, and what was answered is there when the
// store is opened again.
func TestFailureAmidManyQueues(t *testing.T) {
	t.Parallel()
	const queues = 600
	var msgs []engine.Message
	var wants []engine.Want
	for i := range queues {
		name := fmt.Sprint("q", i)
		msgs = append(msgs, message(name, "k", 0))
		wants = append(wants, engine.Want{Queue: name, Max: 1, TTR: time.Hour, Remote: true})
	}
	amid := 0 // failures that left some queues changed and others not
	for k, through := int64(1), false; !through; k++ {
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, RetryFor: -1}, diskengine.Tune{SegmentBytes: 64 << 10}}
		e := p.open(t)
		var n atomic.Int64
		d.Hook(func(c disktest.Call) error {
			if (c.Op == disktest.Write || c.Op == disktest.Sync) && n.Add(1) >= k {
				return syscall.EIO
			}
			return nil
		})
		pushed, leased, settled, err := tellMany(t, e, msgs, wants)
		if err != nil && !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("write %d failed: %v", k, err)
		}
		through = n.Load() < k
		if err := e.Close(); err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatalf("write %d failed, close: %v", k, err)
		}
		d.Hook(nil)
		e = p.open(t)
		kinds := make(map[engine.QueueInfo]bool)
		for _, w := range wants {
			info, err := e.Queue(t.Context(), w.Queue)
			if err != nil {
				t.Fatal(err)
			}
			is := engine.QueueInfo{Ready: info.Ready, Leased: info.Leased, Dead: info.Dead}
			kinds[is] = true
			switch {
			case is == engine.QueueInfo{Dead: 1}: // settled
			case is == engine.QueueInfo{Leased: 1} && !settled:
			case is == engine.QueueInfo{Ready: 1} && !leased:
			case is == engine.QueueInfo{} && !pushed:
			default:
				t.Fatalf("write %d failed, pushed %t, leased %t, settled %t: %s has %+v", k, pushed, leased, settled, w.Queue, is)
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

// tellMany pushes, leases and buries messages of many queues, a call each, and says which were answered.
func tellMany(t *testing.T, e engine.Engine, msgs []engine.Message, wants []engine.Want) (pushed, leased, settled bool, err error) {
	if _, err := e.Push(t.Context(), msgs); err != nil {
		return false, false, false, err
	}
	g, err := e.Lease(t.Context(), wants)
	if err != nil {
		return true, false, false, err
	}
	var ends []engine.Settlement
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			ends = append(ends, engine.Settlement{Token: l.Token, Do: engine.Bury})
		}
	}
	if len(ends) != len(msgs) {
		t.Errorf("leased %d of %d", len(ends), len(msgs))
	}
	_, err = e.Settle(t.Context(), ends)
	return true, true, err == nil, err
}
