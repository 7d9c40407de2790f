// Package pace hands out leases at a rate: a token bucket by the generic cell rate
// algorithm, which keeps one instant and no timer.
package pace

import (
	"math"
	"time"
)

// step is how long an empty Bucket gathers, at rates that give more than one in that time,
// so that waiters are not woken for each alone.
const step = 5 * time.Millisecond

// Bucket is what a rate has let pass. The zero Bucket is full. It is not safe for
// concurrent use.
type Bucket struct {
	base time.Time // when it was, or would have been, empty
}

// Since is the bucket that gathers since an instant, for stores that keep only the instant:
// Base returns it.
func Since(base time.Time) Bucket { return Bucket{base} }

// Base is since when the bucket gathers.
func (b *Bucket) Base() time.Time { return b.base }

// Rate is how many a second, and how many at once after a rest.
type Rate struct {
	PerSecond float64 // above 0
	Burst     int64   // at least 1
}

// each is the time in which one gathers.
func (r Rate) each() time.Duration { return max(1, time.Duration(float64(time.Second)/r.PerSecond)) }

// rest is the time in which a burst gathers, and at most 292 years.
func (r Rate) rest() time.Duration {
	each := r.each()
	return time.Duration(min(r.Burst, int64(math.MaxInt64/each))) * each
}

// settle brings the bucket to now: it holds no more than a burst, and when the clock was
// set back nothing.
func (b *Bucket) settle(now time.Time, r Rate) {
	if full := now.Add(-r.rest()); b.base.Before(full) {
		b.base = full
	}
	if b.base.After(now) {
		b.base = now
	}
}

// Allows returns how many may pass at now.
func (b *Bucket) Allows(now time.Time, r Rate) int {
	now = now.Round(0) // the wall clock's, as what Next returns is: the monotonic one does not step with it
	b.settle(now, r)
	return int(now.Sub(b.base) / r.each())
}

// Take notes that so many pass, which Allows has allowed.
func (b *Bucket) Take(n int, r Rate) { b.base = b.base.Add(time.Duration(n) * r.each()) }

// Next returns when some may pass again: one, or what gathers in 5 ms if that is more.
func (b *Bucket) Next(r Rate) time.Time {
	some := min(r.Burst, max(1, int64(step/r.each())))
	return b.base.Add(time.Duration(some) * r.each())
}
