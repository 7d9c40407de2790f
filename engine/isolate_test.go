package engine

import (
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	p := Policy{MaxAttempts: 20, Isolate: true}
	for attempt, most := range map[uint32]time.Duration{2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: MaxSpread, 19: MaxSpread} {
		seen := map[time.Duration]bool{}
		for id := ID(1 << 60); id < 1<<60+100; id++ {
			d := p.Spread(id, attempt)
			if d < 0 || d >= most || d%time.Millisecond != 0 {
				t.Fatalf("attempt %d of id %d: %s, not below %s", attempt, id, d, most)
			}
			seen[d] = true
		}
		if len(seen) < 100 {
			t.Errorf("attempt %d: only %d of 100 messages come apart", attempt, len(seen))
		}
	}
	apart := Policy{MaxAttempts: 20}
	for name, d := range map[string]time.Duration{"first": p.Spread(7, 1), "last": p.Spread(7, 20), "not isolated": apart.Spread(7, 5)} {
		if d != 0 {
			t.Errorf("%s: %s", name, d)
		}
	}
}
