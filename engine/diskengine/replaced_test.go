package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// inRuns opens a store in which n large messages stand in a run, with keys 0, 1 and so on.
func inRuns(t *testing.T, n, body int, tune diskengine.Tune) (*disktest.Disk, *diskengine.Engine) {
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MemoryBytes: diskengine.LeastMemory, MinFreeBytes: -1}, tune}.open(t)
	large(t, e, n, body, engine.Message{Due: engine.When{In: time.Hour}})
	must(t, e.Flush(t.Context()))
	return d, e
}

// TestLargeOnesReplacedAsOne replaces or keeps many large messages by one atomic push, in one step or in many:
// their contents are not held together.
func TestLargeOnesReplacedAsOne(t *testing.T) {
	const n, body, most = 24, 1 << 20, 12 << 20
	for name, policy := range map[string]engine.Conflict{"replace": engine.Replace, "keep": engine.Keep} {
		for _, step := range []int{0, 1} {
			t.Run(fmt.Sprint(name, step), func(t *testing.T) {
				heap := func() int64 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					return int64(m.HeapAlloc)
				}
				d, e := inRuns(t, n, body, diskengine.Tune{Atomic: step})
				var msgs []engine.Message
				for i := range n {
					m := message("q", fmt.Sprint(i), 2*time.Hour)
					m.OnConflict = policy
					msgs = append(msgs, m)
				}
				before, top := heap(), int64(0)
				d.Hook(func(c disktest.Call) error {
					if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Len >= body {
						top = max(top, heap())
					}
					return nil
				})
				r, err := e.PushAtomic(t.Context(), msgs)
				must(t, err)
				for i := range r {
					must(t, r[i].Err)
				}
				if top == 0 {
					t.Fatal("no content was read")
				}
				if grown := top - before; grown > most {
					t.Errorf("%d MiB are held for %d messages of %d MiB", grown>>20, n, body>>20)
				}
				must(t, e.Close())
			})
		}
	}
}

// TestCallerOfAnAtomicPushLeaves: he is told that it may have been carried out.
func TestCallerOfAnAtomicPushLeaves(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var begun atomic.Bool
	_, e := inRuns(t, 10, 1000, diskengine.Tune{Atomic: 1, Between: func(where string) {
		if where == "atomic" && begun.Load() {
			leave()
		}
	}})
	begun.Store(true)
	_, err := e.PushAtomic(ctx, rearms("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"))
	var told *engine.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &told) || told.Hint != engine.HintUnknown {
		t.Errorf("%v", err)
	}
	must(t, e.Close())
}
