package sstable

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// TestSalvage changes bytes all over an sstable: all entries are given whose blocks are what they were, with
// their positions, and holes where others stood. Who is dead may be told where it is known how many
// entries there were.
func TestSalvage(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(17, 17)), 60)
	r := written(t, d, 1, cfg, all)
	size, blocks := r.Bytes(), r.blocks
	ends := make([]int64, len(blocks))
	for i := range blocks {
		ends[i] = r.blockEnd(i)
	}
	killRange(r, 3, 20)
	dead, alive := r.AppendBits(nil)
	must(t, r.Close())
	holed := 0
	for off := int64(0); off < size; off += 7 {
		d.Flip(r.name, off, 1<<(off%8))
		s, err := Salvage(d, "/runs", 1, cfg, uint32(len(all)))
		must(t, err)
		hit := slices.IndexFunc(blocks, func(b blockRef) bool { return off >= b.off && off < ends[slices.Index(blocks, b)] })
		var want []int
		for i := range all {
			if hit < 0 || uint32(i) < blocks[hit].first || hit+1 < len(blocks) && uint32(i) >= blocks[hit+1].first {
				want = append(want, i)
			}
		}
		n := 0
		must(t, s.Each(func(e Entry, placed bool) error {
			if n == len(want) || int(e.Pos) != want[n] || !placed || e.Place != all[want[n]].Place || string(e.Value) != string(all[want[n]].value) {
				t.Fatalf("offset %d of %d: entry %d is %+v (%v), not the one at %d", off, size, n, e, placed, want[n])
			}
			n++
			return nil
		}))
		if n != len(want) || (hit >= 0) != (len(s.Holes) == 1) {
			t.Fatalf("offset %d of %d: %d entries of %d, holes %+v", off, size, n, len(want), s.Holes)
		}
		lost := 0
		must(t, s.Lost(func(id uint64, pos uint32) {
			if all[pos].ID != id || slices.Contains(want, int(pos)) {
				t.Fatalf("offset %d: id %d is lost at %d", off, id, pos)
			}
			lost++
		}))
		if hit >= 0 {
			holed++
			if h := s.Holes[0]; !h.Counted || int(h.To-h.From) != len(all)-n || lost != len(all)-n || h.Offset != blocks[hit].off {
				t.Fatalf("offset %d: %+v, %d ids, of %d", off, h, lost, len(all)-n)
			}
		}
		s.RestoreBits(dead)
		if n := s.Count(0, s.Len()); n != alive {
			t.Fatalf("%d are alive, want %d", n, alive)
		}
		must(t, s.Close())
		d.Flip(r.name, off, 1<<(off%8))
	}
	if holed == 0 || d.Handles() > 0 {
		t.Errorf("%d holes; %d files are open", holed, d.Handles())
	}
}

// TestSalvageBlind takes the footer and two blocks from an sstable: the others are found, and none is said to be
// at a place that is not known. Without the header too nothing is known.
func TestSalvageBlind(t *testing.T) {
	d, cfg := newDisk(t), small()
	all := things(rand.New(rand.NewPCG(18, 18)), 150)
	r := written(t, d, 1, cfg, all)
	size, blocks := r.Bytes(), r.blocks
	must(t, r.Close())
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	d.Flip(r.name, size-1, 1) // of the footer
	d.Zero(r.name, blocks[1].off, blocks[2].off-blocks[1].off)
	d.Flip(r.name, blocks[3].off+20, 1)
	s, err := Salvage(d, "/runs", 1, cfg, 0)
	must(t, err)
	n := 0
	must(t, s.Each(func(e Entry, placed bool) error {
		if placed != (n < int(blocks[1].first)) {
			t.Errorf("entry %d is placed: %v", n, placed)
		}
		n++
		return nil
	}))
	if want := len(all) - int(blocks[2].first-blocks[1].first) - int(blocks[4].first-blocks[3].first); n != want {
		t.Errorf("%d entries, want %d; holes %+v", n, want, s.Holes)
	}
	must(t, s.Close())

	// One in which nothing can be read is said to be damaged, and so is another one's.
	var damage *vfs.DamageError
	if _, err := Salvage(d, "/runs", 1, &Config{ID: cfg.ID + 1}, 0); !errors.As(err, &damage) {
		t.Error(err)
	}
	d.Flip(r.name, 30, 1) // of the header
	if _, err := Salvage(d, "/runs", 1, cfg, 0); !errors.As(err, &damage) {
		t.Error(err)
	}
	d.Zero(r.name, 0, size)
	if _, err := Salvage(d, "/runs", 1, cfg, 80); !errors.As(err, &damage) || damage.File != r.name {
		t.Errorf("zeros: %v", err)
	}
}
