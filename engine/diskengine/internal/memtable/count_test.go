package memtable

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// endOfArea is the last position of an area.
var endOfArea = Position{At: math.MaxInt64, ID: math.MaxUint64}

// counted is a Recent beside a plain list of what is in it.
type counted struct {
	*Tables
	rng *rand.Rand
	all []Entry
	id  uint64
}

const countedTimes = 300 // for many more entries

func (c *counted) draw(id uint64) Entry {
	return Entry{ID: id, Queue: c.rng.Uint32N(3), Area: Area(c.rng.IntN(int(Areas))), At: c.position().At}
}

func (c *counted) position() Position {
	switch c.rng.IntN(20) {
	case 0:
		return First
	case 1:
		return endOfArea
	}
	return Position{c.rng.Int64N(countedTimes) - countedTimes/2, c.rng.Uint64N(c.id + 2)}
}

// step adds an entry, or, more often the lower grow is, moves or removes one.
func (c *counted) step(grow float64) {
	if len(c.all) == 0 || c.rng.Float64() < grow {
		c.id++
		e := c.draw(c.id)
		c.Add(e)
		c.all = append(c.all, e)
		return
	}
	i := c.rng.IntN(len(c.all))
	e := c.draw(c.all[i].ID)
	switch c.rng.IntN(2) {
	case 0:
		c.Put(e)
		c.all[i] = e
	default:
		c.Remove(e.ID)
		last := len(c.all) - 1
		c.all[i] = c.all[last]
		c.all = c.all[:last]
	}
}

func (c *counted) check(t *testing.T) {
	t.Helper()
	c.each(func(w *table) { w.order().sound(t) })
	sorted := slices.SortedFunc(slices.Values(c.all), compare)
	for range 500 {
		queue, a, from, to := c.rng.Uint32N(4), Area(c.rng.IntN(int(Areas))), c.position(), c.position()
		find := func(p Position) int {
			i, _ := slices.BinarySearchFunc(sorted, Entry{Queue: queue, Area: a, At: p.At, ID: p.ID}, compare)
			return i
		}
		want := max(0, find(to)-find(from))
		if got := c.CountRange(queue, a, from, to); got != int64(want) {
			t.Fatalf("%d entries of queue %d, area %d from %v to %v, want %d", got, queue, a, from, to, want)
		}
	}
	for _, w := range c.sealed {
		s := &Sealed{of: c.Tables, tables: []*table{w}}
		at, due, all := c.position().At, int64(0), int64(0)
		for _, e := range c.all {
			if _, h := w.byID(e.ID); h == nil {
				continue
			}
			if e.Area != Listed {
				all++
			}
			if e.Area == Live && e.At < at {
				due++
			}
		}
		if gotDue, gotAll := s.DueBefore(at, 3); gotDue != due || gotAll != all {
			t.Fatalf("%d of %d entries of a sealed memtable are due before %d, want %d of %d", gotDue, gotAll, at, due, all)
		}
		if due, _ := s.DueBefore(at, 1); due < 0 || due > s.Count(Live) {
			t.Fatalf("by one queue %d are due of %d", due, s.Count(Live))
		}
	}
	for a := range Areas {
		if got, want := c.CountRange(1, a, First, endOfArea), c.Count(1, a); got != want {
			t.Fatalf("area %d: %d entries in all, want %d", a, got, want)
		}
	}
}

// TestCountRange: what lies between two positions is counted as in a list that is sorted, while
// entries come, move and go, in up to three memtables, many of them of one time.
func TestCountRange(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &counted{Tables: small(), rng: rand.New(rand.NewPCG(seed, 1))}
	defer c.Close()
	for round := range 12 {
		grow := 0.75
		if round%4 == 3 {
			grow = 0.1
		}
		for range 8000 {
			c.step(grow)
		}
		c.check(t)
		switch round {
		case 2, 5:
			c.Seal()
		case 9:
			old := &Sealed{of: c.Tables, tables: c.sealed[:1]}
			c.all = slices.DeleteFunc(c.all, func(e Entry) bool {
				_, h := old.tables[0].byID(e.ID)
				return h != nil
			})
			old.Drop()
		}
	}
	for len(c.all) > 0 {
		c.step(0)
	}
	c.check(t)
}
