package diskengine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// narrow is an engine in a bubble of package synctest on a disk that has become small.
type narrow struct {
	*testing.T
	*diskengine.Engine
	disk *disktest.Disk
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

// large pushes a message of so many bytes as one with nothing else.
func (n *narrow) large(key string, bytes int64) error {
	m := message("large", key, time.Hour)
	m.Body = noise(int(bytes))
	return pushAll(n.T, n, m)
}

func onNarrow(t *testing.T, cfg diskengine.Config, span int64, fn func(n *narrow)) {
	synctest.Test(t, func(t *testing.T) {
		n := &narrow{T: t, disk: disktest.New(nil)}
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

// TestFlushHasRoomBesideAHeldLog pushes, and cancels half of that, until the disk is full, while a backup keeps all of
// the log: what is in no sstable yet has room in one.
func TestFlushHasRoomBesideAHeldLog(t *testing.T) {
	onNarrow(t, diskengine.Config{MinFreeBytes: -1, BallastBytes: 256 << 10}, 512<<10, func(n *narrow) {
		defer n.Pin()()
		n.leave(6 << 20)
		for i, refused := 0, 0; refused < 20; i++ {
			if i%2 == 1 {
				if _, err := n.Cancel(n.Context(), []engine.Ref{{Queue: "large", Key: fmt.Sprint(i - 1)}}); err != nil {
					n.Fatal(err)
				}
			}
			if err := n.large(fmt.Sprint(i), 4<<10); errors.Is(err, engine.ErrNoSpace) {
				refused++
				time.Sleep(time.Second)
			} else if err != nil {
				n.Fatal(err)
			}
		}
		if err := n.Flush(n.Context()); err != nil {
			n.Error(err)
		}
		n.disk.SetSpace(0)
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
			n.disk.Hook(func(c disktest.Call) error {
				if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
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
