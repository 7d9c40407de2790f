package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// TestFullDisk fills a disk up: pushes are refused, all else goes on, and once there is space again
// so do they.
func TestFullDisk(t *testing.T) { synctest.Test(t, fillDisk) }

func fillDisk(t *testing.T) {
	m, states := full(t)
	m.disk.SetSpace(m.disk.Used() + 256<<10)
	e := m.open(t)
	defer e.Close()
	ctx := t.Context()
	var err error
	n := 0
	for ; err == nil && n < 10_000; n++ {
		key := fmt.Sprintf("fill-%d", n)
		var r []engine.PushResult
		if r, err = e.Push(ctx, []engine.Message{{Queue: "q", Key: key, Due: engine.When{In: 1 << 40}, Content: engine.Content{Body: make([]byte, 1000)}}}); err == nil {
			err = r[0].Err
		}
		if err == nil {
			states[key] = engine.Scheduled
		}
	}
	if !errors.Is(err, engine.ErrNoSpace) {
		t.Fatalf("push %d on a full disk: %v", n, err)
	}
	holds(t, e, states)
	for i := range n - 1 {
		key := fmt.Sprintf("fill-%d", i)
		if errs, err := e.Cancel(ctx, []engine.Ref{{Queue: "q", Key: key}}); err != nil || errs[0] != nil {
			t.Fatalf("cancel of %s on a full disk: %v, %v", key, errs, err)
		}
		states[key] = engine.Gone
	}
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatalf("lease on a full disk: %+v, %v", g, err)
	}
	l := g.Queues[0].Messages[0]
	if s, err := e.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Ack}}); err != nil || s[0].Err != nil {
		t.Fatalf("ack on a full disk: %v, %v", s, err)
	}
	states[l.Key] = engine.Gone
	holds(t, e, states)
	m.disk.SetSpace(0)
	if err := e.Flush(ctx); err != nil {
		t.Fatalf("flush with space: %v", err)
	}
	time.Sleep(2 * time.Second)
	if r, err := e.Push(ctx, []engine.Message{{Queue: "q", Key: "again"}}); err != nil || r[0].Err != nil {
		t.Fatalf("push with space: %v, %v", r, err)
	}
	states["again"] = engine.Ready
	holds(t, e, states)
}
