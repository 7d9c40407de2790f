package trend

import (
	"math"
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a Histogram.
const Buckets = 57

// The first bound of the buckets, and the bound half an octave above.
const (
	bound0 = 500 * time.Microsecond
	bound1 = 707_107 * time.Nanosecond // √2 × bound0
)

// Bounds returns the upper bounds of a Histogram's buckets. The first bucket ends at half a
// millisecond, and each later bound is √2 times the one before. The last bucket has no upper
// bound: it holds durations longer than 26 hours.
func Bounds() (all [Buckets - 1]time.Duration) {
	for i := range all {
		all[i] = bound(i)
	}
	return all
}

func bound(i int) time.Duration {
	if i&1 == 0 {
		return bound0 << (i / 2)
	}
	return bound1 << (i / 2)
}

// bucket returns the bucket of a duration.
func bucket(d time.Duration) int {
	if d < bound0 {
		return 0
	}
	octave := bits.Len64(uint64(d/bound0)) - 1
	i := 2*octave + 1
	if i < Buckets-1 && d >= bound(i) {
		i++
	}
	return min(i, Buckets-1)
}

// Histogram counts durations in buckets.
type Histogram struct {
	Counts [Buckets]uint64 // see Bounds
	Max    time.Duration   // the longest
}

func (h *Histogram) observe(d time.Duration) {
	h.Counts[bucket(d)]++
	h.Max = max(h.Max, d)
}

func (h *Histogram) add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Max = max(h.Max, o.Max)
}

// Count returns the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration that the given share of all durations, from 0 to 1, do not
// exceed. ok is false if there are no durations. Because of the buckets the result may be
// off by a factor of √2, or by half a millisecond for durations shorter than that.
func (h *Histogram) Quantile(share float64) (d time.Duration, ok bool) {
	all := h.Count()
	if all == 0 {
		return 0, false
	}
	rank := min(max(share, 0), 1) * float64(all)
	below := 0.0
	for i, n := range h.Counts {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		part := (rank - below) / float64(n)
		switch i {
		case 0:
			d = time.Duration(part * float64(bound0))
		case Buckets - 1:
			d = h.Max
		default:
			d = time.Duration(float64(bound(i-1)) * math.Pow(math.Sqrt2, part))
		}
		return min(d, h.Max), true
	}
	return h.Max, true
}
