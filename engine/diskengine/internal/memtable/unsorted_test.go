package memtable

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortItems(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, ids := range []func(i int) uint64{func(i int) uint64 { return uint64(i) }, func(int) uint64 { return rng.Uint64() }} {
		items := make([]item, 2000)
		for i := range items {
			items[i] = item{hi: rng.Uint32N(3) << 29, at: rng.Int64N(1000) << 40, id: ids(i)}
		}
		want := slices.SortedFunc(slices.Values(items), func(a, b item) int {
			return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
		})
		if got := sortItems(items); !slices.Equal(got, want) {
			t.Error("it is not sorted")
		}
	}
}

// TestOrderReadSeldom: entries that were changed before their order is read are where they belong.
func TestOrderReadSeldom(t *testing.T) {
	c := &counted{Tables: small(), rng: rand.New(rand.NewPCG(1, 2))}
	defer c.Close()
	most := 0
	for n := range 200_000 {
		if c.step(0.75); n%7000 == 0 && len(c.all) > 0 { // there and back
			there := c.all[0]
			there.At++
			c.Put(there)
			c.Put(c.all[0])
		}
		if most = max(most, c.active.unsorted.n); n%90_000 == 89_999 {
			c.check(t)
		}
	}
	if want := mostParts * chunkItems; most != want {
		t.Errorf("at most %d were not sorted, want %d", most, want)
	}
	if w := c.Seal().tables[0]; w.unsorted.n > 0 {
		t.Errorf("%d are not sorted once sealed", w.unsorted.n)
	}
	c.check(t)
}
