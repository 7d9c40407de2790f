package diskengine_test

import (
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

// TestLookUpsEndThoughRunsChange has another set of sstables in force each time that a call has begun to read
// what a step of it lacked: what it has found stays right, so that it ends after a few of them. What has come
// to stand elsewhere meanwhile is found there.
func TestLookUpsEndThoughRunsChange(t *testing.T) {
	const most = 60
	flush := func(e *diskengine.Engine) error { return e.Flush(context.Background()) }
	merge := func(e *diskengine.Engine) error { return errors.Join(flush(e), e.Merge(context.Background())) }
	moveOne := func(e *diskengine.Engine, n int) {
		if n > 5 {
			return
		}
		key := fmt.Sprint(n)
		errs, err := e.Cancel(context.Background(), []engine.Ref{{Queue: "q", Key: key}})
		if err != nil || errs[0] != nil {
			t.Error(errs, err)
		}
		must(t, pushAll(t, e, message("q", key, 0)))
	}
	for name, change := range map[string]func(e *diskengine.Engine, n int) error{
		"flush":                func(e *diskengine.Engine, _ int) error { return flush(e) },
		"merge":                func(e *diskengine.Engine, _ int) error { return merge(e) },
		"others move, flushed": func(e *diskengine.Engine, n int) error { moveOne(e, n); return flush(e) },
		"others move, merged":  func(e *diskengine.Engine, n int) error { moveOne(e, n); return merge(e) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			d := disktest.New(nil)
			var mu sync.Mutex
			stepped, changing, changes := true, false, 0
			p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 128 << 10, MergeTables: 1000}}
			p.tune.Held = func(bool) {
				mu.Lock()
				defer mu.Unlock()
				stepped = stepped || !changing
			}
			e := p.open(t)
			_, err := e.PushAtomic(ctx, atomicMessages(nil))
			must(t, errors.Join(err, e.Flush(ctx)))
			due := func() bool {
				mu.Lock()
				defer mu.Unlock()
				was := changing
				changing = changing || stepped
				stepped = false
				return !was && changing
			}
			d.Hook(func(c disktest.Call) error {
				if c.Op != disktest.Read || !strings.HasSuffix(c.Name, ".run") || !due() {
					return nil
				}
				if changes++; changes == most {
					t.Errorf("it has not ended after %d changes", most)
					stop()
				}
				err := pushAll(t, e, message("other", fmt.Sprint(changes), time.Hour))
				if err = errors.Join(err, change(e, changes)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				changing = false
				return nil
			})
			_, err = e.PushAtomic(ctx, atomicMessages(func(m *engine.Message, i int) { m.OnConflict, m.Body = engine.Replace, fmt.Append(nil, i) }))
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			d.Hook(nil)
			t.Logf("%d changes", changes)
			if err == nil {
				for _, i := range []int{0, 1, 2, 300, atomics - 1} {
					if m, err := e.Get(ctx, engine.Ref{Queue: "q", Key: fmt.Sprint(i)}); err != nil || string(m.Body) != fmt.Sprint(i) {
						t.Errorf("%s: %q, %v", m.Key, m.Body, err)
					}
				}
				holdsReady(t, e, atomics)
			}
			must(t, errors.Join(e.Sound(), e.Close()))
		})
	}
}

// TestWhatGoesWhileItIsRead: a message that is cancelled while a call reads it is gone for that call. Of two
// dead messages of an sstable with the same key, the call then finds the other one.
func TestWhatGoesWhileItIsRead(t *testing.T) {
	for name, byID := range map[string]bool{"by id": true, "dead, by key": false} {
		t.Run(name, func(t *testing.T) {
			d, clock := disktest.New(nil), enginetest.NewClock()
			e := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
			must(t, pushAll(t, e, message("q", "a", 0)))
			settle(t, e, lease(t, e, "q", 1), engine.Bury)
			clock.Advance(time.Second)
			must(t, pushAll(t, e, message("q", "a", 0)))
			settle(t, e, lease(t, e, "q", 1), engine.Bury)
			must(t, e.Flush(t.Context()))
			last := engine.Ref{Queue: "q", ID: 2}
			var cancelled atomic.Bool
			d.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && c.Off == 64 && cancelled.CompareAndSwap(false, true) {
					errs, err := e.Cancel(t.Context(), []engine.Ref{last}) // the indexes have led to it already
					if err = errors.Join(append(errs, err)...); err != nil {
						t.Error(err)
					}
				}
				return nil
			})
			ref := engine.Ref{Queue: "q", Key: "a"}
			if byID {
				ref = last
			}
			m, err := e.Get(t.Context(), ref)
			d.Hook(nil)
			if !cancelled.Load() || byID && !errors.Is(err, engine.ErrNotFound) || !byID && (err != nil || m.ID != 1) {
				t.Errorf("%v, %v", m, err)
			}
			must(t, e.Close())
		})
	}
}

// TestWhatMovesWhileItIsRead: a message that changes and is flushed while a call looks for it by its id is
// found in its new sstable.
func TestWhatMovesWhileItIsRead(t *testing.T) {
	e, during := amidARead(t)
	must(t, errors.Join(pushAll(t, e, message("q", "a", time.Hour)), e.Flush(t.Context())))
	during(func() error {
		m := message("q", "a", 2*time.Hour)
		m.OnConflict = engine.Replace
		return errors.Join(pushAll(t, e, m), e.Flush(context.Background()))
	})
	if m, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: 1}); err != nil || m.Key != "a" {
		t.Errorf("%v, %v", m, err)
	}
}

// TestLeaseAmidAMerge leases from two sstables, which are merged once the first is being read.
func TestLeaseAmidAMerge(t *testing.T) {
	e, during := amidARead(t)
	for _, key := range []string{"a", "b"} {
		must(t, errors.Join(pushAll(t, e, message("q", key, 0)), e.Flush(t.Context())))
	}
	during(func() error { return e.Merge(context.Background()) })
	if some := lease(t, e, "q", 2); len(some) != 2 {
		t.Errorf("leased are %v", some)
	}
}

// amidARead is an engine, and has a function called within the next read of an sstable.
func amidARead(t *testing.T) (e *diskengine.Engine, during func(func() error)) {
	d := disktest.New(nil)
	e = place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 1000}}.open(t)
	called := false
	t.Cleanup(func() {
		d.Hook(nil)
		if !called {
			t.Error("nothing was read")
		}
		must(t, e.Close())
	})
	return e, func(do func() error) {
		var once atomic.Bool
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && once.CompareAndSwap(false, true) {
				called = true
				if err := do(); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
	}
}
