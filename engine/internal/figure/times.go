package figure

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// bounds are the upper bounds of the buckets of all Times, in seconds. They suit syncs, round
// trips and waits.
var bounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// limits are the bounds in nanoseconds.
var limits = func() (l [len(bounds)]int64) {
	for i, b := range bounds {
		l[i] = int64(b * 1e9)
	}
	return l
}()

// Times is a histogram of durations. The zero value is empty. It is safe for concurrent use,
// and an observation costs two atomic additions.
type Times struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe counts a duration.
func (t *Times) Observe(d time.Duration) {
	ns, i := max(0, int64(d)), 0
	for i < len(limits) && ns > limits[i] {
		i++
	}
	t.counts[i].Add(1)
	t.sum.Add(ns)
}

// Since counts the time since start.
func (t *Times) Since(start time.Time) { t.Observe(time.Since(start)) }

// Count returns how many durations were counted.
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
