package memtable

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// meanwhile is a lock that calls fn when it is first released.
type meanwhile struct{ fn func() }

func (*meanwhile) Lock() {}
func (m *meanwhile) Unlock() {
	fn := m.fn
	m.fn = func() {}
	fn()
}

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

// TestSort: what is changed, or read in order, while a sealed memtable is sorted is so afterwards.
func TestSort(t *testing.T) {
	for name, fn := range map[string]func(*counted){
		"nothing": func(*counted) {},
		"changed": func(c *counted) {
			for range 2000 {
				c.step(0)
			}
		},
		"read":             func(c *counted) { c.check(t) },
		"read and changed": func(c *counted) { c.check(t); c.step(0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &counted{Tables: small(), rng: rand.New(rand.NewPCG(1, 2))}
			defer c.Close()
			for range 9000 {
				c.step(0.75)
			}
			for _, e := range c.all[:100] { // there and back
				there := e
				there.At++
				c.Put(there)
				c.Put(e)
			}
			c.Seal().Sort(&meanwhile{func() { fn(c) }})
			if n := c.sealed[0].w.unsorted.n; n > 0 {
				t.Errorf("%d are not sorted", n)
			}
			c.check(t)
		})
	}
}
