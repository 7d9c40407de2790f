// Package pace hands out leases at a rate: a token bucket by the generic cell rate
// algorithm, which keeps one instant and no timer.
package pace

import (
	"math"
	"time"
)

// step is how long an empty Bucket gathers before Next, at rates that give more than one
// lease in that time. Waiters are then woken for several leases at once.
const step = 5 * time.Millisecond

// Bucket is the state of a rate. The zero Bucket is full. It is not safe for concurrent use.
type Bucket struct {
	base time.Time // when the bucket was, or would have been, empty
}

// Since returns the bucket that has gathered since an instant. A store keeps only that
// instant, which Base returns.
func Since(base time.Time) Bucket { return Bucket{base} }

// Base returns since when the bucket has gathered.
func (b *Bucket) Base() time.Time { return b.base }

// Rate is how many leases a second are allowed, and how many at once after a pause.
type Rate struct {
	PerSecond float64 // above 0
	Burst     int64   // at least 1
}

// each returns the time in which one lease gathers.
func (r Rate) each() time.Duration { return max(1, time.Duration(float64(time.Second)/r.PerSecond)) }

// rest returns the time in which a burst gathers, at most 292 years.
func (r Rate) rest() time.Duration {
	each := r.each()
	return time.Duration(min(r.Burst, int64(math.MaxInt64/each))) * each
}

// settle brings the bucket to now. The bucket then holds at most a burst, and nothing if the
// clock was set back.
func (b *Bucket) settle(now time.Time, r Rate) {
	if full := now.Add(-r.rest()); b.base.Before(full) {
		b.base = full
	}
	if b.base.After(now) {
		b.base = now
	}
}

// Allows returns how many leases are allowed at now.
func (b *Bucket) Allows(now time.Time, r Rate) int {
	now = now.Round(0) // Next returns wall-clock time, which may step; the monotonic clock does not
	b.settle(now, r)
	return int(now.Sub(b.base) / r.each())
}

// Take takes n leases, which Allows has allowed.
func (b *Bucket) Take(n int, r Rate) { b.base = b.base.Add(time.Duration(n) * r.each()) }

// Next returns when leases are allowed again: one, or as many as gather in 5 ms if that is
// more.
func (b *Bucket) Next(r Rate) time.Time {
	some := min(r.Burst, max(1, int64(step/r.each())))
	return b.base.Add(time.Duration(some) * r.each())
}
