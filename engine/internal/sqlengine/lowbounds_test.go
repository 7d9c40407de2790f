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
		known.endLook(known.beginLook(queues, lookSlow), heads, 0, c.took)
		slow := slices.ContainsFunc(known.beginLook(queues, lookSlow).from, func(from LowBound) bool { return !from.Lowest() })
		if slow == c.quick {
			t.Errorf("after whole looks at %d queues that took %v the next one begins at the bounds: %t", c.queues, c.took, slow)
		}
	}
}
