package memtable

import (
	"math/rand/v2"
	"testing"
)

// Ids that follow each other stand in the table, others in the index beside it; all are found, also
// those that were put before the table came as far.
func TestIDs(t *testing.T) {
	p := &pool{onHeap: true}
	a := newArena(p)
	x := newIDs(p)
	rng := rand.New(rand.NewPCG(1, 1))
	refs := make(map[uint64]ref)
	insert := func(id uint64, isNew bool) {
		if refs[id] != 0 {
			return
		}
		r, h := a.take(&Entry{})
		h.id, refs[id] = id, r
		if isNew {
			x.extend(id)
		}
		x.insert(id, r)
	}
	next := uint64(1 << 40)
	for range 3 * partIDs {
		switch k := rng.Uint64N(40); {
		case k == 0:
			insert(rng.Uint64N(next), false) // an old one
		case k == 1:
			insert(next+rng.Uint64N(4*partIDs), false) // one to come
		case k == 2:
			insert(next+1<<30+k, true) // a leap
		default:
			next++
			insert(next, true)
		}
	}
	if parts := len(x.parts); parts < 3 || parts > 4 {
		t.Errorf("the table has %d parts", parts)
	}
	for id, r := range refs {
		if got := x.find(id, &a); got != r {
			t.Fatalf("id %d is at %d, found %d", id, r, got)
		}
		if rng.IntN(2) == 0 {
			x.remove(id, r)
			a.drop(r)
			refs[id] = 0
		}
	}
	for id, r := range refs {
		if got := x.find(id, &a); got != r {
			t.Fatalf("when others were removed id %d is at %d, found %d", id, r, got)
		}
	}
	x.close()
	a.close()
	if taken, _ := p.memory(); taken != 0 {
		t.Errorf("%d bytes are not given back", taken)
	}
}
