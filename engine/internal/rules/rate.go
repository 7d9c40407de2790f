package rules

import (
	"math"
	"time"
)

// wakeEvery is how often waiters are woken at high rates: each time for several leases.
const wakeEvery = 5 * time.Millisecond

// Bucket is the state of a rate at which leases are handed out: a token bucket by the generic
// cell rate algorithm, which keeps one instant and no timer. The zero Bucket is full. It is not
// safe for concurrent use.
type Bucket struct {
	base time.Time // see Base
}

// Since returns a bucket that was empty at an instant. That instant, which Base returns, is
// all that a store keeps.
func Since(base time.Time) Bucket { return Bucket{base} }

// Base returns when the bucket was, or would have been, empty.
func (b *Bucket) Base() time.Time { return b.base }

// Rate is how many leases a second are allowed, and how many at once after a pause.
type Rate struct {
	PerSecond float64 // above 0
	Burst     int64   // at least 1
}

// interval is the time between two leases.
func (r Rate) interval() time.Duration {
	return max(1, time.Duration(float64(time.Second)/r.PerSecond))
}

// fillTime is how long an empty bucket takes to hold a burst, at most 292 years.
func (r Rate) fillTime() time.Duration {
	interval := r.interval()
	return time.Duration(min(r.Burst, int64(math.MaxInt64/interval))) * interval
}

// settle brings the bucket to now. The bucket then holds at most a burst, and nothing if the
// clock was set back.
func (b *Bucket) settle(now time.Time, r Rate) {
	if full := now.Add(-r.fillTime()); b.base.Before(full) {
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
	return int(now.Sub(b.base) / r.interval())
}

// Take takes n leases, which Allows has allowed.
func (b *Bucket) Take(n int, r Rate) { b.base = b.base.Add(time.Duration(n) * r.interval()) }

// Next returns when leases are allowed again: one, or as many as 5 ms allow if that is more.
func (b *Bucket) Next(r Rate) time.Time {
	leases := min(r.Burst, max(1, int64(wakeEvery/r.interval())))
	return b.base.Add(time.Duration(leases) * r.interval())
}
