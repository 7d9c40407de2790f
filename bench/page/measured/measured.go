// Package measured has what measurements say: figures and distributions of lateness.
package measured

import (
	"math"
	"time"
)

// Result is what one measurement of a system says.
type Result struct {
	System  string
	Part    string
	Turn    int
	Figures map[string]float64
	Late    Distribution `json:",omitempty"`
	Version string       `json:",omitempty"` // of the server
	Error   string       `json:",omitempty"` // why there are no figures
}

// Distribution counts durations in classes, each 2 % wider than the one before.
type Distribution map[int]int

const (
	least  = 10 * time.Microsecond // all that is less is in class 0
	growth = 1.02
)

// Add counts a duration.
func (d Distribution) Add(v time.Duration) { d[class(v)]++ }

func class(v time.Duration) int {
	if v <= least {
		return 0
	}
	return int(math.Ceil(math.Log(float64(v)/float64(least)) / math.Log(growth)))
}

// Merge adds what another has counted.
func (d Distribution) Merge(other Distribution) {
	for class, n := range other {
		d[class] += n
	}
}

// Count returns how many were counted.
func (d Distribution) Count() (n int) {
	for _, in := range d {
		n += in
	}
	return n
}

// Quantile returns the duration that the share q does not exceed, up to 2 % more; 0 if there
// is none.
func (d Distribution) Quantile(q float64) time.Duration {
	highest := -1
	for class := range d {
		highest = max(highest, class)
	}
	left := int(math.Ceil(q * float64(d.Count())))
	for class := 0; class <= highest; class++ {
		if left -= d[class]; left <= 0 {
			return time.Duration(float64(least) * math.Pow(growth, float64(class)))
		}
	}
	return 0
}
