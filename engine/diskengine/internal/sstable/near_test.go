package sstable

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestHeads scans the first bytes of values: short ones are whole, and so are all others that stand
// with somebody in a block or are packed; of the rest no more is read.
func TestHeads(t *testing.T) {
	all := things(rand.New(rand.NewPCG(2, 2)), 2000)
	for i := range all {
		if n := len(all[i].value); n > 900 && i%2 == 0 {
			all[i].value = noise(n) // the others are packed, and read whole
		}
	}
	r := written(t, newDisk(t), 1, small(), all)
	r.Kill(7)
	for _, most := range []int{0, 100, 1 << 20} {
		cut := 0
		for _, s := range []*Scan{r.Scan(0, r.n).Heads(most), r.ScanBack(0, r.n).Heads(most)} {
			n := 0
			for ; s.Next(); n++ {
				e := s.Entry()
				x := all[e.Pos]
				want := x.value
				if e.Cut {
					want = want[:most]
					cut++
				}
				if e.Place != x.Place || e.Cut && len(x.value) <= most || !bytes.Equal(e.Value, want) {
					t.Fatalf("%d: entry %d is %v with %d bytes, cut %v", most, e.Pos, e.Place, len(e.Value), e.Cut)
				}
			}
			must(t, s.Err())
			must(t, s.Close())
			if n != len(all)-1 {
				t.Errorf("%d: %d of %d entries", most, n, len(all)-1)
			}
		}
		if (cut > 0) != (most < 900) {
			t.Errorf("%d: %d are cut", most, cut)
		}
	}
	must(t, r.Close())
}

// TestSearchMany finds places as one by one, and reads a block once.
func TestSearchMany(t *testing.T) {
	all := things(rand.New(rand.NewPCG(3, 3)), 2000)
	d := newDisk(t)
	r := written(t, d, 1, small(), all)
	var places []Place
	for i, x := range all {
		places = append(places, x.Place)
		if i%10 == 0 {
			places = append(places, Place{x.Queue, x.At, x.ID + 1})
		}
	}
	var want []uint32
	for _, p := range places {
		pos, err := search(r, p)
		must(t, err)
		want = append(want, pos)
	}
	reads := 0
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read {
			reads++
		}
		return nil
	})
	at, damage, err := r.Search(places...)
	must(t, err)
	must(t, damage)
	if !slices.Equal(at, want) {
		t.Error("they stand elsewhere than Search says")
	}
	if reads == 0 || reads > len(r.blocks) {
		t.Errorf("%d blocks were read of %d", reads, len(r.blocks))
	}
	must(t, r.Close())
}

// TestNear compares what is told of places without reading with what is read: in sstables whose entries
// have many times, and few.
func TestNear(t *testing.T) {
	for _, times := range []int64{1, 2, 1000} {
		rng := rand.New(rand.NewPCG(1, uint64(times)))
		all := things(rng, 3000)
		for i := range all {
			all[i].At = all[i].At % times
		}
		order(all)
		r := written(t, newDisk(t), 1, small(), all)
		most := 0 // entries of a block
		for i, b := range r.blocks {
			next := r.n
			if i+1 < len(r.blocks) {
				next = r.blocks[i+1].first
			}
			most = max(most, int(next-b.first))
		}
		for i, x := range all {
			for _, p := range []Place{x.Place, {x.Queue, x.At, x.ID + 1}, {x.Queue, x.At, 0}, {x.Queue, x.At + 1, 0}, {x.Queue + 1, x.At, x.ID}} {
				want, err := search(r, p)
				must(t, err)
				if got := r.Behind(p); got > want || int(want-got) > most {
					t.Fatalf("%d times: all from %v on are behind %d, and stand from %d on; a block has %d at most", times, p, got, want, most)
				}
			}
			pos := uint32(i)
			at, exact := r.Floor(pos)
			if at > x.At || exact && at != x.At {
				t.Errorf("%d times: entry %d has the time %d and the floor %d, %v", times, i, x.At, at, exact)
			}
			if first := r.QueueAt(pos).From == pos; first && !exact {
				t.Errorf("%d times: the time of entry %d, the first of its queue, is not known", times, i)
			}
		}
		must(t, r.Close())
	}
}
