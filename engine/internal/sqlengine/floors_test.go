package sqlengine

import (
	"slices"
	"testing"
	"time"
)

// Many queues that are looked at together are not taken for ones whose looks take long.
func TestManyQueuesShareALook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queues int
		took   time.Duration
		cheap  bool
	}{
		{1, time.Millisecond, true}, {1, 2 * lookCheap, false},
		{100, 2 * lookCheap, true}, {2, 4 * lookCheap, false}, {100, lookMany, false},
	} {
		var f floors
		queues, heads := make([]int64, c.queues), make([]Heads, c.queues)
		for i := range queues {
			queues[i], heads[i].Num = int64(i+1), int64(i+1)
		}
		for range 2 {
			f.saw(f.of(queues, timed), heads, 0, c.took)
		}
		dear := slices.ContainsFunc(f.from(queues, sure), func(from Floor) bool { return !from.Ground() })
		if dear == c.cheap {
			t.Errorf("after looks at %d queues that took %v the next is from floors: %t", c.queues, c.took, dear)
		}
	}
}
