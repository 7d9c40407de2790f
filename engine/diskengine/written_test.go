package diskengine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// hanging is an engine whose log can be made to hang.
type hanging struct {
	*diskengine.Engine
	disk *disktest.Disk
	gate chan struct{}
}

func openHanging(t *testing.T) *hanging {
	d := disktest.New(nil)
	return &hanging{place{d, "data", diskengine.Config{Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t), d, nil}
}

// hang has calls of the log not answer from now on.
func (h *hanging) hang(ops ...string) {
	time.Sleep(10 * time.Second) // nothing is under way
	gate := make(chan struct{})
	h.gate = gate
	h.disk.Hook(func(c disktest.Call) error {
		for _, op := range ops {
			if c.Op == op && ofLog(c) {
				<-gate
			}
		}
		return nil
	})
}

// release has them answer, and closes the engine.
func (h *hanging) release(t *testing.T) {
	t.Helper()
	h.disk.Hook(nil)
	close(h.gate)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// brief ends soon.
func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestLeaseWithoutSync leases while no sync of the log returns: that is answered once it is written, but
// who asks for the message is not told of it, and what comes after it waits.
func TestLeaseWithoutSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t)
		if err := pushAll(t, h, message("q", "a", 0), message("q", "b", 0)); err != nil {
			t.Fatal(err)
		}
		h.hang(disktest.Sync)
		defer h.release(t)
		g, err := h.Lease(brief(t), []engine.Want{{Queue: "q", Max: 1, TTR: time.Hour, Remote: true}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(err, g)
		}
		leased := g.Queues[0].Messages[0]
		ref := engine.Ref{Queue: "q", Key: leased.Key}
		keep := message("q", leased.Key, 0)
		keep.OnConflict = engine.Keep
		for _, call := range []struct {
			what string
			do   func(ctx context.Context) error
		}{
			{"get", func(ctx context.Context) error { _, err := h.Get(ctx, ref); return err }},
			{"keep", func(ctx context.Context) error { _, err := h.Push(ctx, []engine.Message{keep}); return err }},
			{"refused atomic push", func(ctx context.Context) error {
				_, err := h.PushAtomic(ctx, []engine.Message{message("q", leased.Key, 0)})
				return err
			}},
			{"ack", func(ctx context.Context) error {
				_, err := h.Settle(ctx, []engine.Settlement{{Token: leased.Token, Do: engine.Ack}})
				return err
			}},
		} {
			if err := call.do(brief(t)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", call.what, err)
			}
		}
	})
}

// TestLeasesThatAreNotWritten leases from two queues at once while no write of the log returns: an attempt is to
// count also if its handler kills the process, so no lease is answered before it is written.
func TestLeasesThatAreNotWritten(t *testing.T) {
	for _, remote := range [][2]bool{{true, false}, {false, false}} {
		synctest.Test(t, func(t *testing.T) {
			h := openHanging(t)
			if err := pushAll(t, h, message("a", "k", 0), message("b", "k", 0)); err != nil {
				t.Fatal(err)
			}
			h.hang(disktest.Write)
			g, err := h.Lease(brief(t), []engine.Want{{Queue: "a", Max: 1, TTR: time.Hour, Remote: remote[0]}, {Queue: "b", Max: 1, TTR: time.Hour, Remote: remote[1]}})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("remote %v: %+v, %v", remote, g, err)
			}
			h.release(t)
		})
	}
}

// TestReadsWhileTheLogHangs asks for what is durable while no write of the log returns: that is answered.
func TestReadsWhileTheLogHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t)
		if err := pushAll(t, h, message("quiet", "k", time.Hour)); err != nil {
			t.Fatal(err)
		}
		h.hang(disktest.Write, disktest.Sync)
		defer h.release(t)
		if _, err := h.Push(brief(t), []engine.Message{message("q", "new", 0)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("push: %v", err)
		}
		for what, call := range map[string]func(ctx context.Context) error{
			"get": func(ctx context.Context) error {
				_, err := h.Get(ctx, engine.Ref{Queue: "quiet", Key: "k"})
				return err
			},
			"list": func(ctx context.Context) error {
				_, err := h.List(ctx, engine.ListQuery{Queue: "quiet", State: engine.Scheduled, Limit: 10})
				return err
			},
			"queue": func(ctx context.Context) error { _, err := h.Queue(ctx, "quiet"); return err },
			"forecast": func(ctx context.Context) error {
				_, err := h.Forecast(ctx, "quiet", time.Minute, time.Hour)
				return err
			},
		} {
			if err := call(brief(t)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestCountsOfALeaseLeft leaves a lease that dropped something: the next one tells of it.
func TestCountsOfALeaseLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t)
		stale := message("q", "a", 0)
		stale.ExpireAfter = time.Second
		if err := pushAll(t, h, stale, message("q", "b", 0)); err != nil {
			t.Fatal(err)
		}
		h.hang(disktest.Write)
		if _, err := h.Lease(brief(t), []engine.Want{{Queue: "q", Max: 5, TTR: time.Hour, Remote: true}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		h.disk.Hook(nil)
		close(h.gate)
		h.gate = make(chan struct{})
		defer h.release(t)
		time.Sleep(time.Second)
		g, err := h.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, TTR: time.Hour}})
		if err != nil || len(g.Queues[0].Messages) != 1 || g.Queues[0].Messages[0].Attempt != 1 || g.Queues[0].Expired != 1 {
			t.Errorf("%+v, %v; want b in its first attempt, and one that expired", g.Queues[0], err)
		}
	})
}

// TestListsWhatIsDurable replaces a message at each read of a list, while no sync of the log returns: the list does
// not show what a loss of power would undo.
func TestListsWhatIsDurable(t *testing.T) {
	for k, through, shown := 1, false, 0; !through; k++ {
		synctest.Test(t, func(t *testing.T) {
			h := openHanging(t)
			old := message("q", "k", time.Hour)
			old.Body = []byte("old")
			must(t, pushAll(t, h, old))
			must(t, h.Flush(t.Context()))
			time.Sleep(10 * time.Second) // nothing is under way
			h.gate = make(chan struct{})
			defer h.release(t)
			n := 0
			h.disk.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Sync && ofLog(c) {
					<-h.gate
				}
				if c.Op == disktest.Read && n < k {
					if n++; n == k {
						replace := old
						replace.Body, replace.OnConflict = []byte("new"), engine.KeepDue
						go h.Push(context.Background(), []engine.Message{replace})
						synctest.Wait()
					}
				}
				return nil
			})
			page, err := h.List(brief(t), engine.ListQuery{Queue: "q", State: engine.Scheduled, Limit: 10, Body: true})
			if err == nil && len(page.Messages) == 1 && string(page.Messages[0].Body) == "new" {
				t.Errorf("replaced at read %d: it is listed before it is durable", k)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				shown++
			}
			through = n < k
		})
		if through && (k == 1 || shown == 0) {
			t.Errorf("a list made %d reads, and waited for none", k-1)
		}
	}
}
