package rules

import (
	"cmp"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Pace returns the pace that a Config sets: 0 is the engine's default, less is none.
func Pace(set, byDefault time.Duration) time.Duration {
	return min(max(cmp.Or(set, byDefault), 0), engine.MaxPace)
}
