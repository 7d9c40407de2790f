package sqlengine

import (
	"slices"
	"testing"
	"time"
)

// A look at many queues takes longer than a look at one, and none of them is slow for that.
func TestManyQueuesShareALook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queues int
		took   time.Duration
		quick  bool
	}{
		{1, time.Millisecond, true}, {1, 2 * lookSlow, false},
		{100, 2 * lookSlow, true}, {2, 4 * lookSlow, false}, {100, lookMany, false},
	} {
		known := cache{queues: make(map[int64]*cached)}
		queues, heads := make([]int64, c.queues), make([]Heads, c.queues)
		for i := range queues {
			queues[i], heads[i].Num = int64(i+1), int64(i+1)
		}
		for range 2 {
			known.endLook(known.beginLook(queues, lookSlow), heads, 0, c.took)
		}
		slow := slices.ContainsFunc(known.beginLook(queues, lookSlow).from, func(from LowBound) bool { return !from.Lowest() })
		if slow == c.quick {
			t.Errorf("after whole looks at %d queues that took %v the next one begins at the bounds: %t", c.queues, c.took, slow)
		}
	}
}

// A single slow look may have waited for a connection or for a failover. It neither ends the
// whole looks of leases nor delays the next one.
func TestOneSlowLook(t *testing.T) {
	t.Parallel()
	known := cache{queues: make(map[int64]*cached)}
	queues, heads := []int64{1}, []Heads{{Queue: Queue{Num: 1}}}
	for _, took := range []time.Duration{time.Millisecond, lookMost, time.Millisecond, lookMost} {
		known.endLook(known.beginLook(queues, lookSlow), heads, 0, took)
		if l := known.beginLook(queues, lookSlow); !l.from[0].Lowest() {
			t.Errorf("after one whole look that took %v the next one begins at the bound", took)
		}
		if wait := time.Until(known.of(1).next); wait > lookLeast {
			t.Errorf("after one whole look that took %v the next one is in %v", took, wait)
		}
	}
}

// A lease looks for the dead and the memories of a queue once it has seen that the queue drops
// some. What a look left out raises no bound.
func TestLooksLeaveOutWhatIsKept(t *testing.T) {
	t.Parallel()
	heads := func(keep time.Duration, remembers bool) []Heads {
		h := Heads{Queue: Queue{Num: 1, Remembers: remembers}}
		h.Settings.DeadKeep = keep
		h.Has(highest(1).From, never)
		return []Heads{h}
	}
	for _, drops := range [][]Heads{heads(time.Hour, false), heads(0, true)} {
		known := cache{queues: make(map[int64]*cached)}
		queues := []int64{1}
		if known.beginLook(queues, 0).from[0].Live() {
			t.Error("a look at an unknown queue leaves out the dead")
		}
		known = cache{queues: make(map[int64]*cached)}
		known.saw(heads(0, false))
		l := known.beginLook(queues, 0)
		if !l.from[0].Live() {
			t.Error("a look at a queue that keeps its dead does not leave them out")
		}
		known.saw(drops)
		known.endLook(l, drops, 0, 0)
		if low := lowest(1); known.of(1).bound != low {
			t.Errorf("the look raised the bound to %+v", known.of(1).bound)
		}
		if known.beginLook(queues, 0).from[0].Live() {
			t.Error("a look at a queue that drops messages leaves out the dead")
		}
	}
}
