package diskengine_test

import (
	"bytes"
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

// TestDiesAmidAnAtomicPush: the last lease of a message lapses amid an atomic push that meets it: it dies with
// its body.
func TestDiesAmidAnAtomicPush(t *testing.T) {
	for name, policy := range map[string]engine.Conflict{"keep": engine.Keep, "replace": engine.Replace, "reject": engine.Reject} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Int64
			var armed atomic.Bool
			begun := time.Now()
			cfg := diskengine.Config{Logger: quiet, MinFreeBytes: -1, Now: func() time.Time { return begun.Add(time.Duration(later.Load())) }}
			e := place{disktest.New(nil), "data", cfg, diskengine.Tune{Atomic: 1, Between: func(where string) {
				if where == "atomic" && armed.CompareAndSwap(true, false) {
					later.Add(int64(2 * time.Hour))
				}
			}}}.open(t)
			m := message("q", "k", 0)
			m.MaxAttempts, m.Body = 1, noise(10_000)
			r, err := e.Push(t.Context(), []engine.Message{m})
			must(t, err)
			must(t, e.Flush(t.Context()))
			if got := lease(t, e, "q", 10); len(got) != 1 {
				t.Fatal(got)
			}
			other := message("q", "k", time.Hour)
			other.OnConflict = policy
			armed.Store(true)
			_, err = e.PushAtomic(t.Context(), []engine.Message{message("q", "new", time.Hour), other})
			must(t, err)
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: r[0].ID})
			if err != nil || i.State != engine.Dead || !bytes.Equal(i.Body, m.Body) {
				t.Errorf("it is %v with %d bytes of body: %v", i.State, len(i.Body), err)
			}
			must(t, e.Close())
		})
	}
}
