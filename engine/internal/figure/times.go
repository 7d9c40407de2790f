package figure

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// bounds are those of the buckets of all Times, in seconds: of a sync, a round trip, a wait.
var bounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// limits are the bounds in nanoseconds.
var limits = func() (l [len(bounds)]int64) {
	for i, b := range bounds {
		l[i] = int64(b * 1e9)
	}
	return l
}()

// Times counts how long things took. The zero value is empty. It may be used by many
// goroutines, and costs each two atomic additions.
type Times struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts one that took d.
func (t *Times) Observe(d time.Duration) {
	ns, i := max(0, int64(d)), 0
	for i < len(limits) && ns > limits[i] {
		i++
	}
	t.counts[i].Add(1)
	t.sum.Add(ns)
}

// Since counts one that began at start.
func (t *Times) Since(start time.Time) { t.Observe(time.Since(start)) }

// Count is how many have been counted.
func (t *Times) Count() (n uint64) {
	for i := range t.counts {
		n += t.counts[i].Load()
	}
	return n
}

func (t *Times) distribution() *engine.Distribution {
	d := &engine.Distribution{Bounds: slices.Clone(bounds[:]), Counts: make([]uint64, len(t.counts)), Sum: time.Duration(t.sum.Load()).Seconds()}
	for i := range t.counts {
		d.Counts[i] = t.counts[i].Load()
	}
	return d
}
