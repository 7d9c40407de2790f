package wal

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// copied copies what is held to a new directory and returns what a log there holds.
func copied(t *testing.T, d vfs.FS, h *Hold, cfg *Config, from Pos) (Copied, Found, []item) {
	t.Helper()
	const up = "/copy"
	if err := d.Mkdir(up); err != nil {
		names, _ := d.List(up)
		for _, name := range names {
			must(t, d.Remove(filepath.Join(up, name)))
		}
	}
	c, err := h.Copy(d, up, func(int) error { return nil })
	must(t, err)
	var all []item
	found, err := Read(d, up, cfg, from, func(e Entry) error {
		all = append(all, item{e.Kind, append([]byte{}, e.Bytes...), e.Start, e.End})
		return nil
	})
	must(t, err)
	return c, found, all
}

// TestCopy copies logs in random histories, with releases, openings and torn tails: a copy is a log
// that was closed where the other one was synced.
func TestCopy(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		h, rng := new(history), rand.New(rand.NewPCG(seed, 3))
		h.reopened(0)
		torn, several := 0, 0
		for range 12 {
			_, from, _ := h.promised()
			l, found, _, err := tryOpen(d, cfg, from)
			must(t, err)
			h.reopened(found.End)
			for range 4 {
				must(t, h.run(t, l, rng, 10))
				_, from, _ := h.promised()
				hold := l.Hold(from)
				must(t, h.run(t, l, rng, 6))
				h.release(l)
				must(t, h.run(t, l, rng, 6))
				_, _, sure := h.promised()
				if rng.IntN(3) == 0 { // the end of what is synced may be within it
					must(t, h.put(l, 3*minSegment))
				}
				c, found, all := copied(t, d, hold, cfg, from)
				hold.Release()
				if c.End < sure || found.End != c.End || found.Torn != nil || found.Segments > c.Files {
					t.Fatalf("seed %d: durable to %d, copied %+v, found %+v", seed, sure, c, found)
				}
				if c.Files > 1 {
					several++
				}
				var want []item
				for _, i := range h.items {
					if i.start >= from && i.end <= c.End {
						want = append(want, i)
					}
				}
				same(t, all, want)
			}
			must(t, h.put(l, 300)) // perhaps cut off
			after := d.Crash(disktest.Seeded(rng.Uint64()))
			must(t, l.Close())
			if found.Torn != nil {
				torn++
			}
			d = after
		}
		if torn == 0 || several == 0 {
			t.Errorf("seed %d: %d torn tails, %d copies of several segments", seed, torn, several)
		}
	})
}

// TestCopyWhileOthersAppend: what is held stays though all is released, and the log goes on; then it
// is let go.
func TestCopyWhileOthersAppend(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	var items []item
	for n := range 40 {
		items = append(items, add(t, l, 1, text(n, 5000)))
	}
	hold := l.Hold(0)
	l.Release(items[39].end)
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for n := 40; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			end, err := l.Append(1, text(n, 5000))
			if err == nil {
				err = l.Wait(t.Context(), end)
			}
			if err != nil {
				t.Error(err)
				return
			}
			l.Release(end)
		}
	})
	c, found, all := copied(t, d, hold, cfg, 0)
	close(stop)
	group.Wait()
	if found.Torn != nil || found.End != c.End || len(all) < 40 {
		t.Errorf("copied %+v, found %+v, %d entries", c, found, len(all))
	}
	same(t, all[:40], items)
	held := l.Size()
	hold.Release()
	hold.Release()
	if l.Size() >= held || l.Size() > 2*cfg.SegmentBytes {
		t.Errorf("%d bytes are kept for nobody, %d before", l.Size(), held)
	}
	must(t, l.Close())
}

// TestCopyWhileOthersAreReleased has segments before the held part be released and used again in
// the midst of a copy, which does without them.
func TestCopyWhileOthersAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cfg := newDisk(t), small()
		l, _ := open(t, d, cfg, 0)
		var items []item
		for n := range 60 {
			items = append(items, add(t, l, 1, text(n, 5000)))
		}
		from := items[49].end
		hold := l.Hold(from)
		must(t, d.Mkdir("/copy"))
		c, err := hold.Copy(d, "/copy", func(int) error {
			l.Release(from)
			synctest.Wait()
			return nil
		})
		must(t, err)
		var all []item
		found, err := Read(d, "/copy", cfg, from, func(e Entry) error {
			all = append(all, item{e.Kind, append([]byte{}, e.Bytes...), e.Start, e.End})
			return nil
		})
		must(t, err)
		same(t, all, items[50:])
		if found.Segments != c.Files {
			t.Errorf("%d segments are needed, %d copied", found.Segments, c.Files)
		}
		hold.Release()
		must(t, l.Close())
	})
}

// TestCopyOfNothing: a log of which no segment was begun.
func TestCopyOfNothing(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	hold := l.Hold(0)
	defer hold.Release()
	if c, found, all := copied(t, d, hold, cfg, 0); c.End != 0 || c.Files != 0 || found.Torn != nil || len(all) > 0 {
		t.Errorf("%+v, %+v, %d entries", c, found, len(all))
	}
	must(t, l.Close())
}

// TestCopyRefusesDamage: a frame that is not sound ends the copy, as does who waits between slices.
func TestCopyRefusesDamage(t *testing.T) {
	d, cfg := newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	add(t, l, 1, text(1, 5000))
	add(t, l, 1, text(2, 5000))
	hold := l.Hold(0)
	defer hold.Release()
	must(t, d.Mkdir("/copy"))
	if _, err := hold.Copy(d, "/copy", func(int) error { return errTest }); !errors.Is(err, errTest) {
		t.Errorf("ended: %v", err)
	}
	first, last := int64(headerSize+100), headerSize+padded(5000)+100
	for dir, off := range map[string]int64{"/first": first, "/last": last} { // nothing says that the last one was durable
		d.Flip(segmentName("/log", 1), off, 1)
		must(t, d.Mkdir(dir))
		if _, err := hold.Copy(d, dir, func(int) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("damaged at %d: %v", off, err)
		}
		d.Flip(segmentName("/log", 1), off, 1)
	}
	must(t, l.Close())
}
