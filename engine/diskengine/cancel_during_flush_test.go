package diskengine_test

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestCancelDuringFlushAndMerge cancels a message at each point of a flush or a merge where others are let
// in: it does not come back, neither at once nor when the log no longer tells of it and the store is opened
// again.
func TestCancelDuringFlushAndMerge(t *testing.T) {
	for _, where := range []string{"pass", "install", "installing", "flush", "merge", "merged"} {
		t.Run(where, func(t *testing.T) {
			var e *diskengine.Engine
			came := false
			p := newPlace(disktest.New(nil), nil)
			p.tune.Still = true
			p.tune.Between = func(at string) {
				if at == where && !came {
					came = true
					refused, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "b"}})
					must(t, err)
					must(t, refused[0])
				}
			}
			e = p.open(t)
			gone := func() {
				t.Helper()
				if err := e.Sound(); err != nil {
					t.Error(err)
				}
				if bodies, _ := whatLives(t, e); len(bodies) != 5 || bodies["b"] != "" {
					t.Errorf("%v", bodies)
				}
			}
			pushKeys(t, e, "a", "b", "c")
			if where == "merge" || where == "merged" {
				must(t, e.Flush(t.Context()))
				pushKeys(t, e, "d", "e", "f")
				must(t, e.Flush(t.Context()))
				must(t, e.Merge(t.Context()))
			} else {
				pushKeys(t, e, "d", "e", "f")
				must(t, e.Flush(t.Context()))
			}
			if !came {
				t.Fatal("nobody was let in")
			}
			gone()
			must(t, e.Flush(t.Context())) // now the log is replayed from behind the cancel
			must(t, e.Close())
			e = p.open(t)
			gone()
			must(t, e.Close())
		})
	}
}

// TestLapsedLeaseOutlivesAFlush: of a lease that had lapsed before the log was let go, the attempt counts and
// the token settles in a store that is opened anew.
func TestLapsedLeaseOutlivesAFlush(t *testing.T) {
	clock, d := enginetest.NewClock(), disktest.New(nil)
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	e := p.open(t)
	must(t, pushAll(t, e, message("q", "a", 0), message("q", "b", 0)))
	held := lease(t, e, "q", 2)
	clock.Advance(2 * time.Hour)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Leased != 0 {
		t.Fatal(err, i)
	}
	must(t, e.Flush(t.Context()))
	must(t, e.Close())
	e = p.open(t)
	settle(t, e, held[:1], engine.Ack)
	if again := lease(t, e, "q", 2); len(again) != 1 || again[0].Attempt != 2 {
		t.Errorf("%+v", again)
	}
	must(t, e.Close())
}
