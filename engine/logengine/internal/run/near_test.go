package run

import (
	"math/rand/v2"
	"testing"
)

// TestNear compares what is told of places without reading with what is read: in runs whose entries
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
				want, err := r.Search(p)
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
