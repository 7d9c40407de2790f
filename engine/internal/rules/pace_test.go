package rules

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestPace(t *testing.T) {
	t.Parallel()
	for set, want := range map[time.Duration]time.Duration{0: 5, 3: 3, -1: 0, time.Hour: engine.MaxPace} {
		if got := Pace(set, 5); got != want {
			t.Errorf("%d leads to a pace of %d, want %d", set, got, want)
		}
	}
}
