package wal

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// written makes a log of some segments that were used before, and returns how many bytes of
// each hold something.
func written(t *testing.T) (d *disktest.Disk, cfg *Config, items []item, from Pos, used map[string]int64) {
	d, cfg = newDisk(t), small()
	l, _ := open(t, d, cfg, 0)
	for i := range 20 {
		from = add(t, l, 1, text(i, 9000)).end
	}
	l.Release(from)
	must(t, l.Close())
	l, _ = open(t, d, cfg, from)
	for i := range 14 {
		items = append(items, add(t, l, 2, text(100+i, i*1200)))
	}
	must(t, l.Close())
	c, err := scan(d, "/log", cfg.ID)
	must(t, err)
	used = map[string]int64{}
	for i, s := range c.begun {
		if i+1 < len(c.begun) && c.begun[i+1].base <= from {
			continue // it is not read
		}
		var w window
		w.reset(s, s.end())
		off := int64(headerSize)
		for pos, prev := s.base, s.crc; ; {
			f, reason, err := w.frame(c.seed, off)
			must(t, err)
			if reason != "" || f.pos != pos || f.prev != prev {
				break
			}
			pos, prev, off = f.end(), f.crc, off+padded(len(f.piece))
		}
		used[s.name] = off
	}
	must(t, c.close())
	if len(used) < 2 {
		t.Fatalf("%d segments", len(used))
	}
	return d, cfg, items, from, used
}

// TestFlippedBits flips bits all over a log that was closed: each flip is noticed, and the
// error names the file, or the place is of no matter.
func TestFlippedBits(t *testing.T) {
	d, cfg, items, from, used := written(t)
	noticed, harmless := 0, 0
	for name, size := range used {
		last := slices.Max(slices.Collect(maps.Keys(used))) == name
		var at []int64
		for off := range int64(64) {
			at = append(at, off)
		}
		for off := headerSize + rand.Int64N(397); off < size; off += int64(max(1, 397/disktest.Thorough(1, 397))) {
			at = append(at, off)
		}
		for off := size - 2*frameSize; off < size; off++ {
			at = append(at, off)
		}
		for _, off := range at {
			spoiled := d.Kill()
			spoiled.Flip(name, off, 1<<rand.IntN(8))
			_, found, all, err := closing(tryOpen(spoiled, cfg, from))
			var where *vfs.DamageError
			switch {
			case errors.As(err, &where):
				noticed++
				if where.File != name || where.Offset > off {
					t.Fatalf("%s, offset %d: %v", name, off, err)
				}
			case err != nil:
				t.Fatalf("%s, offset %d: %v", name, off, err)
			default:
				harmless++
				same(t, all, items)
				if !last || off < size-frameSize || found.Torn == nil {
					t.Fatalf("%s, offset %d of %d: not noticed, %+v", name, off, size, found)
				}
			}
			if n := spoiled.Handles(); n != 0 {
				t.Fatalf("%d files are open", n)
			}
		}
	}
	t.Logf("%d flips were noticed, %d in the empty frame at the end", noticed, harmless)
}

// TestLostSectors lets sectors of a log that was closed be zeros, or a whole file missing.
func TestLostSectors(t *testing.T) {
	d, cfg, items, from, used := written(t)
	try := func(name string, off int64, spoiled *disktest.Disk) {
		t.Helper()
		_, found, all, err := closing(tryOpen(spoiled, cfg, from))
		if err == nil {
			// With the empty frame goes what says that the one before it was synced.
			same(t, all, items[:len(all)])
			if off < used[name]-512-frameSize || found.Torn == nil || len(all) < len(items)-1 {
				t.Errorf("%s without the sector at %d of %d: %+v", name, off, used[name], found)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s without the sector at %d: %v", name, off, err)
		}
	}
	for name, size := range used {
		for off := int64(0); off < size; off += 512 {
			if off >= 512 && off < headerSize {
				continue // zeros
			}
			spoiled := d.Kill()
			spoiled.Zero(name, off, 512)
			try(name, off, spoiled)
		}
		spoiled := d.Kill()
		must(t, spoiled.Remove(name))
		_, _, all, err := closing(tryOpen(spoiled, cfg, from))
		if isLast := slices.Max(slices.Collect(maps.Keys(used))) == name; isLast && err == nil {
			same(t, all, items[:len(all)]) // nothing tells that it was there
		} else if isLast || !errors.Is(err, ErrDamaged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestReadErrorIsNoDamage lets each read of an opening fail.
func TestReadErrorIsNoDamage(t *testing.T) {
	d, cfg, _, from, _ := written(t)
	for at := int64(1); ; at++ {
		d := d.Kill()
		hit := false
		d.Hook(func(c disktest.Call) error {
			if hit = hit || c.N == at && c.Op == disktest.Read; c.N == at && c.Op == disktest.Read {
				return errTest
			}
			return nil
		})
		_, _, _, err := closing(tryOpen(d, cfg, from))
		if hit && (!errors.Is(err, errTest) || errors.Is(err, ErrDamaged)) || !hit && err != nil {
			t.Fatalf("call %d: %v", at, err)
		}
		if n := d.Handles(); n != 0 {
			t.Fatalf("call %d: %d files are open", at, n)
		}
		if d.Calls() < at {
			return
		}
	}
}

// FuzzOpen gives what is on the disk, anything, to be opened: it is never a crash, and never
// an entry that was not appended.
func FuzzOpen(f *testing.F) {
	d := newDisk(f)
	l, _ := open(f, d, small(), 0)
	want := []item{add(f, l, 1, []byte("one")), add(f, l, 2, []byte("two"))}
	must(f, l.Close())
	file, err := d.Open("/log/0000000000000001.log")
	must(f, err)
	sound := make([]byte, headerSize+256)
	_, err = file.ReadAt(sound, 0)
	must(f, err)
	f.Add(sound, uint16(0), []byte{})
	f.Add(sound, uint16(headerSize), []byte{1, 2, 3})
	f.Add(sound[:headerSize+40], uint16(headerSize+4), []byte{255, 255, 255, 255})
	f.Add([]byte("tarrylog"), uint16(0), []byte{})
	f.Fuzz(func(t *testing.T, b []byte, at uint16, patch []byte) {
		b = append([]byte(nil), b...)
		if int(at) < len(b) {
			copy(b[at:], patch)
		}
		d := newDisk(t)
		file, err := d.Create("/log/0000000000000001.log")
		must(t, err)
		if len(b) > 0 {
			_, err = file.WriteAt(b, 0)
			must(t, err)
		}
		must(t, file.Close())
		_, _, all, err := closing(tryOpen(vfs.FS(d), small(), 0))
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, vfs.ErrVersion) {
			t.Fatal(err)
		}
		if len(all) > len(want) {
			t.Fatalf("%d entries", len(all))
		}
		same(t, all, want[:len(all)])
	})
}

// FuzzFrames cuts any stream into entries, in pieces of any size, and compares with the whole.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 3, 'a', 'b', 'c', 2, 0, 3, 1, 'd'}, uint8(2))
	f.Add([]byte{1, 255, 255, 255, 255, 255, 1}, uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		cut := func(n int) (all []item, end Pos, failed bool) {
			c := cutter{most: 1 << 20, whole: true, fn: func(e Entry) error {
				all = append(all, item{e.Kind, append([]byte(nil), e.Bytes...), e.Start, e.End})
				return nil
			}}
			for at := 0; at < len(stream); at += n {
				piece := stream[at:min(len(stream), at+n)]
				first := uint32(len(piece)) // as a writer would say
				if len(c.rest) == 0 {
					first = 0
				}
				if err := c.add(frame{pos: Pos(at), piece: append([]byte(nil), piece...), first: first}); err != nil {
					return all, c.end, true
				}
			}
			return all, c.end, false
		}
		whole, end, failed := cut(len(stream) + 1)
		parts, pend, pfailed := cut(int(size) + 1)
		if failed != pfailed || end != pend && !failed {
			t.Fatalf("in one piece %d, %v, in pieces of %d %d, %v", end, failed, size+1, pend, pfailed)
		}
		same(t, parts, whole)
	})
}
