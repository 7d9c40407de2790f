package memtable

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func newTestPool() *pool { return &pool{onHeap: true, keep: 1 << 20} }

// check walks a node and what is below, and returns its leaves.
func (o *order) check(t *testing.T, n uint32, depth int, low *item) (leaves []uint32, deep int) {
	t.Helper()
	d := o.node(n)
	if int(d.n) > d.room() {
		t.Fatalf("node %d has %d items", n, d.n)
	}
	for i := range d.items[:d.n] {
		it := &d.items[i]
		if i > 0 && !d.items[i-1].less(it) && (d.leaf || i > 1) || low != nil && it.less(low) && (d.leaf || i > 0) {
			t.Fatalf("node %d, item %d is out of order", n, i)
		}
		if d.leaf {
			continue
		}
		least := low
		if i > 0 {
			least = it
		}
		under, dd := o.check(t, it.ref, depth+1, least)
		if leaves = append(leaves, under...); deep != 0 && dd != deep {
			t.Fatalf("leaves at depths %d and %d", deep, dd)
		}
		sum := uint32(0)
		for _, leaf := range under {
			sum += o.node(leaf).n
		}
		if count := d.counts()[i]; count != sum {
			t.Fatalf("node %d, item %d: %d entries lie below, counted %d", n, i, sum, count)
		}
		deep = dd
	}
	if d.n == 0 {
		t.Fatalf("node %d is empty", n)
	}
	if d.leaf {
		return []uint32{n}, depth + 1
	}
	return leaves, deep
}

// sound checks that the tree is one, and returns its items.
func (o *order) sound(t *testing.T) (items []item) {
	t.Helper()
	if o.root == 0 {
		return nil
	}
	leaves, _ := o.check(t, o.root, 0, nil)
	prev := uint32(0)
	for i, n := range leaves {
		d := o.node(n)
		if next := append(leaves, 0)[i+1]; d.prev != prev || d.next != next {
			t.Fatalf("leaf %d has %d and %d beside it, not %d and %d", n, d.prev, d.next, prev, next)
		}
		items, prev = append(items, d.items[:d.n]...), n
	}
	if len(items) != o.n {
		t.Fatalf("%d items, counted %d", len(items), o.n)
	}
	for i := 0; i < len(items); i += 1 + len(items)/50 {
		it, after := items[i], items[i]
		after.id++ // nothing lies between
		if n, m := o.rank(&it), o.rank(&after); n != int64(i) || m != n+1 {
			t.Fatalf("%d items are less than item %d, and %d than one after it", n, i, m)
		}
	}
	return items
}

func compareItems(a, b item) int {
	if a.less(&b) {
		return -1
	}
	if b.less(&a) {
		return 1
	}
	return 0
}

// TestOrder grows and shrinks orders, in order and in none.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(rng *rand.Rand, i int) item{
		"ascending":   func(_ *rand.Rand, i int) item { return item{hi: 1, at: int64(i), id: uint64(i)} },
		"descending":  func(_ *rand.Rand, i int) item { return item{hi: 1, at: int64(-i), id: uint64(i)} },
		"random":      func(rng *rand.Rand, i int) item { return item{hi: rng.Uint32N(3), at: rng.Int64(), id: uint64(i)} },
		"one instant": func(rng *rand.Rand, i int) item { return item{at: 5, id: rng.Uint64()} },
		"many places": func(_ *rand.Rand, i int) item { return item{hi: uint32(i % 97), at: int64(i), id: uint64(i)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			rng := rand.New(rand.NewPCG(seed, 1))
			o := newOrder(newTestPool())
			var all []item
			for round := range 3 {
				for range 4000 {
					it := draw(rng, len(all)+round*100000)
					it.ref = uint32(len(all))
					o.insert(it)
					all = append(all, it)
				}
				want := slices.SortedFunc(slices.Values(all), compareItems)
				if got := o.sound(t); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %d items in order, want %d", seed, len(got), len(want))
				}
				keep := []int{2000, 30, 0}[round]
				if round%2 == 0 {
					rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
				}
				for i, it := range all[keep:] {
					if !o.remove(it) || o.remove(it) {
						t.Fatalf("seed %d: item %d was removed twice, or never", seed, i)
					}
				}
				all = all[:keep]
				want = slices.SortedFunc(slices.Values(all), compareItems)
				if got := o.sound(t); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %d items are left in order, want %d", seed, len(got), len(want))
				}
			}
			if o.root != 0 {
				t.Error("an empty order has a root")
			}
		})
	}
}

// TestOrderRanges empties whole parts of an order and fills them again, so that nodes are left
// without any below them beside full ones.
func TestOrderRanges(t *testing.T) {
	t.Parallel()
	const n = leafItems * upperItems // below one node above the leaves
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	o := newOrder(newTestPool())
	there := make([]bool, 4*n)
	set := func(from, to int, put bool) {
		for i := from; i < to; i++ {
			if it := (item{at: int64(i), ref: uint32(i)}); put {
				o.insert(it)
			} else if o.remove(it) != there[i] {
				t.Fatalf("seed %d: item %d was there: %v", seed, i, there[i])
			}
			there[i] = put
		}
		if to-from == 1 {
			return
		}
		items := o.sound(t)
		for _, it := range items {
			if !there[it.ref] {
				t.Fatalf("seed %d: item %d was removed", seed, it.ref)
			}
		}
	}
	set(0, 4*n, true)
	set(n, 2*n, false)
	for i := n; i < 2*n; i += 10 {
		set(i, i+1, true)
	}
	set(0, n-5, false)
	for i := n; i < 2*n; i += 10 {
		set(i, i+1, false)
	}
	for range 40 {
		from := rng.IntN(4 * n)
		to := min(4*n, from+rng.IntN(n))
		set(from, to, false)
		for range 50 {
			if i := rng.IntN(4 * n); !there[i] {
				set(i, i+1, true)
			}
		}
	}
	set(0, 4*n, false)
	if o.root != 0 || o.n != 0 {
		t.Error("an empty order has a root")
	}
}

// TestOrderFill: items in order fill their nodes, those in no order two thirds of them, and what
// is left after most are gone is not spread over many.
func TestOrderFill(t *testing.T) {
	nodes := func(o *order) int {
		n := int(o.begun) - 1
		for f := o.free; f != 0; f = o.node(f).next {
			n--
		}
		return n
	}
	const n = 20000
	rng := rand.New(rand.NewPCG(1, 1))
	ascending, random, queues := newOrder(newTestPool()), newOrder(newTestPool()), newOrder(newTestPool())
	for i := range n {
		ascending.insert(item{at: int64(i)})
		random.insert(item{at: rng.Int64(), id: uint64(i)})
		queues.insert(item{hi: uint32(i % 50), at: int64(i)})
	}
	for _, o := range []struct {
		name  string
		nodes int
		least float64
	}{{"ascending", nodes(&ascending), 0.9}, {"random", nodes(&random), 0.6}, {"ascending in many places", nodes(&queues), 0.8}} {
		if fill := n / float64(o.nodes*leafItems); fill < o.least {
			t.Errorf("%s: nodes are full by %.2f, at least %.2f", o.name, fill, o.least)
		}
	}
	items := random.sound(t)
	for i, it := range items {
		if i%100 != 0 {
			random.remove(it)
		}
	}
	if left := len(random.sound(t)); nodes(&random) > left/(leafItems/4)+left/100+2 {
		t.Errorf("%d items are spread over %d nodes", left, nodes(&random))
	}
}
