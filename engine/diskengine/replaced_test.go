package diskengine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// inTables opens a store in which n large messages stand in an sstable, with keys 0, 1 and so on.
func inTables(t *testing.T, n, body int, tune diskengine.Tune) (*disktest.Disk, *diskengine.Engine) {
	d := disktest.New(nil)
	tune.MergeTables = 1000 // a merge would read too
	e := place{d, "data", diskengine.Config{Logger: quiet, MemoryBytes: diskengine.LeastMemory, MinFreeBytes: -1}, tune}.open(t)
	large(t, e, n, body, engine.Message{Due: engine.When{In: time.Hour}})
	must(t, e.Flush(t.Context()))
	return d, e
}

// TestLargeOnesReplacedAsOne replaces or keeps many large messages by one atomic push: what of their contents is read
// is not held together.
func TestLargeOnesReplacedAsOne(t *testing.T) {
	const n, body, most = 24, 1 << 20, 256 << 10
	for name, policy := range map[string]engine.Conflict{"replace": engine.Replace, "keep": engine.Keep} {
		t.Run(name, func(t *testing.T) {
			var kept, read, top atomic.Int64 // after a step, and since
			d, e := inTables(t, n, body, diskengine.Tune{Found: func(bytes int) {
				top.Store(max(top.Load(), kept.Load()+read.Swap(0)))
				kept.Store(int64(bytes))
			}})
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
					read.Add(int64(c.Len))
				}
				return nil
			})
			top.Store(0)
			var msgs []engine.Message
			for i := range n {
				m := message("q", fmt.Sprint(i), 2*time.Hour)
				m.OnConflict = policy
				msgs = append(msgs, m)
			}
			r, err := e.PushAtomic(t.Context(), msgs)
			must(t, err)
			for i := range r {
				must(t, r[i].Err)
			}
			if held := top.Load(); held == 0 || held > most {
				t.Errorf("%d KiB are held for %d messages of %d KiB", held>>10, n, body>>10)
			}
			must(t, e.Close())
		})
	}
}

// onRead does something once, at the next read of an sstable.
func onRead(d *disktest.Disk, do func()) {
	var once sync.Once
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			once.Do(do)
		}
		return nil
	})
}

// TestCallerOfAnAtomicPushLeaves: a caller that leaves during a read is told that the push may be carried out.
func TestCallerOfAnAtomicPushLeaves(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	d, e := inTables(t, 10, 1000, diskengine.Tune{})
	onRead(d, func() {
		leave()
		<-left
	})
	_, err := e.PushAtomic(ctx, rearms("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"))
	close(left)
	var told *engine.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &told) || told.Hint != engine.HintUnknown {
		t.Errorf("%v", err)
	}
	must(t, e.Close())
}

// TestDiesAmidAnAtomicPush: the last lease of a message lapses while an atomic push reads what it meets: the message
// dies with its body.
func TestDiesAmidAnAtomicPush(t *testing.T) {
	for name, policy := range map[string]engine.Conflict{"keep": engine.Keep, "replace": engine.Replace, "reject": engine.Reject} {
		t.Run(name, func(t *testing.T) {
			clock, d := enginetest.NewClock(), disktest.New(nil)
			e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, Now: clock.Now}, diskengine.Tune{}}.open(t)
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
			onRead(d, func() { clock.Advance(2 * time.Hour) })
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

// TestLargeBodyInAStep pushes a large body in a step that has more to say before it and after it: that two have died
// since, and that one of them is too many. All is there when the store is opened again.
func TestLargeBodyInAStep(t *testing.T) {
	clock, d := enginetest.NewClock(), disktest.New(nil)
	p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, Now: clock.Now}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	e := p.open(t)
	_, err := e.Configure(t.Context(), "q", engine.Settings{DeadMax: 1}, "")
	must(t, err)
	bodies := map[string][]byte{"small": noise(300), "long": noise(70_000), "large": noise(200_000), "next": noise(100_000)}
	of := func(key string, policy engine.Conflict) engine.Message {
		m := message("q", key, 0)
		m.Body, m.MaxAttempts, m.OnConflict = bodies[key], 1, policy
		return m
	}
	must(t, pushAll(t, e, of("small", engine.Reject), of("long", engine.Reject)))
	lease(t, e, "q", 2)
	clock.Advance(2 * time.Hour)
	must(t, pushAll(t, e, of("large", engine.Reject), of("next", engine.Reject)))
	bodies["large"] = noise(150_000)
	must(t, pushAll(t, e, of("large", engine.Replace)))
	p.fs = d.Crash(disktest.Nothing())
	for again := range 2 {
		for _, key := range []string{"large", "next"} {
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
			if err != nil || !bytes.Equal(i.Body, bodies[key]) {
				t.Errorf("%s has %d bytes: %v", key, len(i.Body), err)
			}
		}
		if i, err := e.Queue(t.Context(), "q"); err != nil || i.Ready != 2 || i.Dead != 1 {
			t.Errorf("%+v, %v", i, err)
		}
		must(t, errors.Join(e.Sound(), e.Close()))
		if again == 0 {
			e = p.open(t)
		}
	}
}
