package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPushHearsThatTheStoreStopped pushes while there are too many sstables, and has a manifest fail of
// which it is not known whether it counts: the push that waits for merges is told.
func TestPushHearsThatTheStoreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := disktest.New(nil)
		p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 1000}}
		e := p.open(t)
		for i := range 257 {
			push(t, e, fmt.Sprint(i), time.Hour)
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Rename && strings.HasPrefix(filepath.Base(c.Name), "MANIFEST") {
				return syscall.EIO
			}
			return nil
		})
		pushed := make(chan error, 1)
		go func() {
			_, err := e.Push(t.Context(), []engine.Message{message("q", "late", time.Hour)})
			pushed <- err
		}()
		synctest.Wait()
		select {
		case err := <-pushed:
			t.Errorf("a push waits for no merge: %v", err)
			return
		default:
		}
		if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: "0"}}); err != nil || errs[0] != nil { // an sstable is to be left out
			t.Fatal(errs, err)
		}
		select {
		case err := <-pushed:
			if !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("the push: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("the store has stopped, and a push waits for ever")
		}
		if err := e.Close(); err != nil {
			t.Log(err) // why it stopped
		}
	})
}

// TestPushesAreSlowedGradually has callers push in batches, as fast as they can, to a disk that writes sstables more
// slowly: none waits for much longer than what all push at a time takes to be written, which are 22 ms, nor until a
// memtable is, which takes three tenths of a second. Nor does the disk get much of an sstable to write at once.
func TestPushesAreSlowedGradually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, calls, batch, speed = 16, 150, 30, 8 << 20
		d := disktest.New(nil)
		var unsynced, mostUnsynced atomic.Int64
		d.Hook(func(c disktest.Call) error {
			switch {
			case c.Op == disktest.Write && strings.HasSuffix(c.Name, ".run"):
				mostUnsynced.Store(max(mostUnsynced.Load(), unsynced.Add(int64(c.Len))))
				time.Sleep(time.Duration(c.Len) * time.Second / speed)
			case c.Op == disktest.Sync && strings.HasSuffix(c.Name, ".run"):
				unsynced.Store(0)
			case c.Op == disktest.Sync && ofLog(c):
				time.Sleep(200 * time.Microsecond)
			}
			return nil
		})
		e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, MemoryBytes: 16 << 20}, diskengine.Tune{SegmentBytes: 4 << 20}}.open(t)
		var longest [callers]time.Duration
		var group sync.WaitGroup
		begun := time.Now()
		for i := range callers {
			group.Go(func() {
				for n := range calls {
					msgs := make([]engine.Message, batch)
					for k := range msgs {
						msgs[k] = message("q", fmt.Sprint(i, "-", n, "-", k), time.Hour)
						msgs[k].Body = noise(300)
					}
					since := time.Now()
					if err := pushAll(t, e, msgs...); err != nil {
						t.Error(err)
					}
					longest[i] = max(longest[i], time.Since(since))
				}
			})
		}
		group.Wait()
		took := time.Since(begun)
		if flushes := enginetest.FigureOf(t, e, "disk_flushes", ""); flushes < 4 {
			t.Errorf("there were %v flushes", flushes)
		}
		t.Logf("%d bytes in %v, the longest push %v", callers*calls*batch*300, took, slices.Max(longest[:]))
		if most := 90 * time.Millisecond; slices.Max(longest[:]) > most {
			t.Errorf("a push took %v, at most %v is well", slices.Max(longest[:]), most)
		}
		if most := int64(1 << 20); mostUnsynced.Load() > most {
			t.Errorf("a sync of the log may wait for %d bytes of an sstable, at most %d are well", mostUnsynced.Load(), most)
		}
		must(t, e.Close())
	})
}

// TestTurnsOfThoseWhoLeft has many pushes leave before their turns, while there are so many sstables that pushes are
// slowed: a later push does not wait for those turns.
func TestTurnsOfThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 1000}}
		e := p.open(t)
		for i := range 240 {
			push(t, e, fmt.Sprint(i), time.Hour)
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		large := message("q", "", time.Hour)
		large.Body = noise(32 << 10)
		for range 100 {
			var group sync.WaitGroup
			for range 30 {
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					_, _ = e.Push(ctx, []engine.Message{large}) // most leave
				})
			}
			group.Wait()
		}
		since := time.Now()
		push(t, e, "patient", time.Hour)
		if took := time.Since(since); took > time.Second {
			t.Errorf("a push waited for %v", took)
		}
		must(t, e.Close())
	})
}

// crowded is a store in a bubble of package synctest with some KiB of messages in memory, each of 63 KiB.
func crowded(t *testing.T, kb int, in time.Duration, hook func(disktest.Call) error) *diskengine.Engine {
	d := disktest.New(nil)
	d.Hook(hook)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, MemoryBytes: 12 << 20}, diskengine.Tune{SegmentBytes: 1 << 20, SpanBytes: 16 << 20, AheadSpans: -1}}.open(t)
	t.Cleanup(func() { _ = e.Close() })
	for i := range kb / 63 {
		m := message("q", fmt.Sprint(i), in)
		m.Body = noise(63 << 10)
		must(t, pushAll(t, e, m))
	}
	time.Sleep(2 * time.Second) // what can be sealed is
	return e
}

// TestPushesHearThatFlushesFail pushes more than there is memory for while no memtable can be written: what comes then
// is refused, and is taken again once flushes succeed.
func TestPushesHearThatFlushesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		e := crowded(t, 7<<10, time.Hour, func(c disktest.Call) error {
			if c.Op == disktest.Write && strings.HasSuffix(c.Name, ".run") && !mended.Load() {
				return syscall.EIO
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		large := message("q", "large", time.Hour)
		large.Body = noise(2800 << 10)
		must(t, pushAll(t, e, large))
		time.Sleep(time.Second)
		since := time.Now()
		for _, body := range []int{1, 2800 << 10} {
			m := message("q", "other", time.Hour)
			m.Body = noise(body)
			if r, err := e.Push(ctx, []engine.Message{m}); !errors.Is(err, engine.ErrUnavailable) || time.Since(since) > time.Second {
				t.Errorf("a push of %d bytes: %v, %v, after %v", body, err, r, time.Since(since))
			}
		}
		mended.Store(true)
		time.Sleep(15 * time.Second) // it has been tried again by then
		push(t, e, "patient", time.Hour)
		must(t, e.Close())
	})
}

// TestLargePushWaitsForNoRest pushes more than there is memory for beside a memtable that rests, as its messages are
// due soon: that is written now.
func TestLargePushWaitsForNoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := crowded(t, 3600, 50*time.Second, nil)
		if memtables, flushes := enginetest.FigureOf(t, e, "disk_sealed_memtables", ""), enginetest.FigureOf(t, e, "disk_flushes", ""); memtables != 1 || flushes != 0 {
			t.Fatalf("%v memtables rest, and %v flushes were before", memtables, flushes)
		}
		large := message("q", "large", time.Hour)
		large.Body = noise(8 << 20)
		since := time.Now()
		must(t, pushAll(t, e, large))
		if took := time.Since(since); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		must(t, e.Close())
	})
}
