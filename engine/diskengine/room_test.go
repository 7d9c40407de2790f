package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// narrow is an engine in a bubble of package synctest on a disk that has become small.
type narrow struct {
	*testing.T
	*diskengine.Engine
	disk *vfstest.Disk
}

func (n *narrow) is(name string) int64 {
	n.Helper()
	return int64(enginetest.FigureOf(n.T, n.Engine, name, ""))
}

// leave has so many bytes be free beside the log, or taken by it.
func (n *narrow) leave(bytes int64) {
	n.disk.SetSpace(n.disk.Used() - n.is("disk_used_bytes") + bytes)
	time.Sleep(2 * time.Second) // which is noticed
}

// backlog pushes so many kilobytes.
func (n *narrow) backlog(kB int, in time.Duration) {
	n.Helper()
	if _, err := fill(n.T, n, "q", kB, in); err != nil {
		n.Fatal(err)
	}
}

// large pushes a message of so many bytes as one with nothing else.
func (n *narrow) large(key string, bytes int64) error {
	m := message("large", key, time.Hour)
	m.Body = noise(int(bytes))
	return pushAll(n.T, n, m)
}

func onNarrow(t *testing.T, cfg diskengine.Config, span int64, fn func(n *narrow)) {
	synctest.Test(t, func(t *testing.T) {
		n := &narrow{T: t, disk: vfstest.New(nil)}
		cfg.Logger = quiet
		n.Engine = place{n.disk, "data", cfg, diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: span}}.open(t)
		defer func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}()
		fn(n)
	})
}

// TestBacklogMakesRoomForALargePush pushes more than there is room for beside what is in no sstable yet. It is
// refused, and once that is written to an sstable, where enough is gained by it, it is let in.
func TestBacklogMakesRoomForALargePush(t *testing.T) {
	const kB = 1 << 10
	for name, x := range map[string]struct {
		backlog     int // kB that are pushed before
		large, left int64
		free        int64 // that is to stay
		room        bool  // is made
	}{
		"enough is gained":    {backlog: 400, large: 400 * kB, left: 1800 * kB, free: -1, room: true},
		"too little":          {backlog: 400, large: 800 * kB, left: 1800 * kB, free: -1},
		"little stands there": {backlog: 40, large: 400 * kB, left: 1180 * kB, free: -1},
		"others would wait":   {backlog: 400, large: 400 * kB, left: 1800 * kB, free: 900 * kB},
	} {
		t.Run(name, func(t *testing.T) {
			onNarrow(t, diskengine.Config{MinFreeBytes: x.free}, 1<<20, func(n *narrow) {
				n.backlog(x.backlog, time.Hour)
				n.leave(x.left)
				rounds, want := 20, int64(0)
				if x.room {
					rounds, want = 1, 1
				}
				for i := range rounds {
					if err := n.large(fmt.Sprint(i), x.large); !errors.Is(err, engine.ErrNoSpace) {
						n.Fatalf("push %d: %v", i, err)
					}
					if err := n.large("small", 1); i == 0 && err != nil {
						n.Errorf("a small one: %v", err)
					}
					time.Sleep(time.Second)
				}
				if got := n.is("disk_flushes"); got != want {
					n.Errorf("%d flushes, want %d", got, want)
				}
				if err := n.large("again", x.large); x.room != (err == nil) {
					n.Errorf("a push then: %v", err)
				}
			})
		})
	}
}

// TestRefusedPushesAreFlushedForOnce has pushes refused again and again while what is in their way is
// being written, and more comes: that is not written once more for them.
func TestRefusedPushesAreFlushedForOnce(t *testing.T) {
	onNarrow(t, diskengine.Config{MinFreeBytes: -1}, 1<<20, func(n *narrow) {
		gate := make(chan struct{})
		goOn := sync.OnceFunc(func() { close(gate) })
		defer goOn()
		n.disk.Hook(func(c vfstest.Call) error {
			if c.Op == vfstest.Write && strings.HasSuffix(c.Name, ".run") {
				<-gate
			}
			return nil
		})
		n.backlog(400, time.Hour)
		n.leave(1800 << 10)
		for i := range 20 {
			if err := n.large(fmt.Sprint(i), 400<<10); !errors.Is(err, engine.ErrNoSpace) {
				n.Fatalf("push %d: %v", i, err)
			}
			if err := n.large("", 4<<10); err != nil {
				n.Fatal(err)
			}
			synctest.Wait()
		}
		goOn()
		time.Sleep(10 * time.Second)
		if got := n.is("disk_flushes"); got != 1 {
			n.Errorf("%d flushes for pushes that were refused during one", got)
		}
	})
}

// TestLargePushEndsTheRestOfAWindow has what is in the way of a large push be due soon, so that it is not
// written yet, as it might be handled before: now it is.
func TestLargePushEndsTheRestOfAWindow(t *testing.T) {
	onNarrow(t, diskengine.Config{MinFreeBytes: -1}, 256<<10, func(n *narrow) {
		n.backlog(400, 30*time.Second)
		n.leave(5300 << 10)
		if memtables, flushes := n.is("disk_sealed_memtables"), n.is("disk_flushes"); memtables != 1 || flushes != 0 {
			n.Fatalf("%d memtables rest, and %d flushes were before", memtables, flushes)
		}
		if err := n.large("large", 2<<20); !errors.Is(err, engine.ErrNoSpace) {
			n.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := n.large("large", 2<<20); err != nil {
			n.Errorf("once there is room: %v", err)
		}
	})
}

// TestLargeRearmWithoutRoom rearms a large message among others, where there is room for those and not for
// it: it alone is refused.
func TestLargeRearmWithoutRoom(t *testing.T) {
	onNarrow(t, diskengine.Config{MinFreeBytes: -1}, 1<<20, func(n *narrow) {
		for _, key := range []string{"a", "b"} {
			if err := n.large(key, 400<<10); err != nil {
				n.Fatal(err)
			}
		}
		if err := n.Flush(n.Context()); err != nil {
			n.Fatal(err)
		}
		n.leave(1180 << 10)
		rearm := func(key string) engine.Message {
			m := message("large", key, 2*time.Hour)
			m.OnConflict = engine.Rearm
			return m
		}
		msgs := []engine.Message{message("q", "1", 0), rearm("a"), message("q", "2", 0), rearm("b"), message("q", "3", 0)}
		r, err := n.Push(n.Context(), msgs)
		if err != nil {
			n.Fatal(err)
		}
		for i := range r {
			if full := errors.Is(r[i].Err, engine.ErrNoSpace); full != (i == 1 || i == 3) || !full && r[i].Err != nil {
				n.Errorf("push %d comes to %+v", i, r[i])
			}
		}
		if got := lease(n, n, "q", 10); len(got) != 3 {
			n.Errorf("%d of 3 small ones are there", len(got))
		}
	})
}

// TestManyLargeRearmsWithoutRoom: what is read for rearms that are all refused grows with them, not with their
// square.
func TestManyLargeRearmsWithoutRoom(t *testing.T) {
	const large = 150 << 10
	for _, rearms := range []int{8, 32} {
		onNarrow(t, diskengine.Config{MinFreeBytes: -1}, 1<<20, func(n *narrow) {
			var msgs []engine.Message
			for i := range rearms {
				if err := n.large(fmt.Sprint(i), large); err != nil {
					n.Fatal(err)
				}
				m := message("large", fmt.Sprint(i), 2*time.Hour)
				m.OnConflict = engine.Rearm
				msgs = append(msgs, m)
			}
			if err := n.Flush(n.Context()); err != nil {
				n.Fatal(err)
			}
			n.leave(1000 << 10)
			var read atomic.Int64
			n.disk.Hook(func(c vfstest.Call) error {
				if c.Op == vfstest.Read && strings.HasSuffix(c.Name, ".run") {
					read.Add(int64(c.Len))
				}
				return nil
			})
			r, err := n.Push(n.Context(), msgs)
			if err != nil {
				n.Fatal(err)
			}
			for i := range r {
				if !errors.Is(r[i].Err, engine.ErrNoSpace) {
					n.Errorf("rearm %d comes to %+v", i, r[i])
				}
			}
			if most := int64(4 * (rearms + 8) * large); read.Load() > most {
				n.Errorf("for %d rearms %d KiB were read, at most %d are needed", rearms, read.Load()>>10, most>>10)
			}
		})
	}
}
