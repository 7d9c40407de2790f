package bench

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Each power of two is divided into this many buckets, so a value is known to 1/128, better
// than one per cent.
const (
	subBits = 7
	subs    = 1 << subBits
)

// histogram counts any number of durations in 64 KiB. Its methods may be called concurrently.
type histogram struct {
	counts [(64 - subBits) * subs]atomic.Int64
	n      atomic.Int64
	max    atomic.Int64
}

// add counts d; a negative d counts as 0.
func (h *histogram) add(d time.Duration) {
	v := max(int64(d), 0)
	h.counts[bucket(v)].Add(1)
	h.n.Add(1)
	for {
		m := h.max.Load()
		if v <= m || h.max.CompareAndSwap(m, v) {
			return
		}
	}
}

// bucket returns the bucket of a value. Each value below 2*subs has its own; above, the
// leading subBits+1 bits decide.
func bucket(v int64) int {
	shift := max(bits.Len64(uint64(v))-subBits-1, 0)
	return shift*subs + int(v>>shift)
}

// upper returns the greatest value of a bucket.
func upper(b int) int64 {
	if b < 2*subs {
		return int64(b)
	}
	shift := b/subs - 1
	return (int64(b-shift*subs)+1)<<shift - 1
}

// quantile returns the value that the share q of all do not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	n := h.n.Load()
	if n == 0 {
		return 0
	}
	rank := min(max(int64(q*float64(n)+0.9999999), 1), n)
	for b := range h.counts {
		if rank -= h.counts[b].Load(); rank <= 0 {
			return time.Duration(min(upper(b), h.max.Load()))
		}
	}
	return time.Duration(h.max.Load())
}
