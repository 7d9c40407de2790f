package engine

import (
	"testing"
	"time"
)

func TestPaceOr(t *testing.T) {
	t.Parallel()
	for set, want := range map[time.Duration]time.Duration{0: 5, 3: 3, -1: 0, time.Hour: MaxPace} {
		if got := PaceOr(set, 5); got != want {
			t.Errorf("%d leads to a pace of %d, want %d", set, got, want)
		}
	}
}
