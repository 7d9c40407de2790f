package dispatch

import "time"

// Nap sleeps until an instant of this process's wall clock, and notices when that clock steps.
// It sleeps by the monotonic clock, which does not step. So it compares the two once a second,
// and ends early when they have drifted apart.
type Nap struct {
	timer   *time.Timer
	nudge   *nudge    // nil: none
	nudgeAt time.Time // when the nudge fires; zero: it has fired
}

const (
	// compareEvery is how often a Nap compares the clocks.
	compareEvery = time.Second
	// clockDrift is how far apart the clocks may be before that counts as a step.
	clockDrift = 5 * time.Millisecond
)

// NewNap returns a Nap for one goroutine, which must call Stop. A sleep may end a millisecond
// late.
func NewNap() *Nap {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Nap{timer: t}
}

// ExactNap returns a Nap with sleeps that end within tens of microseconds, if system and load
// allow. It holds a file descriptor until Stop. If none is free, it is like a Nap from NewNap.
func ExactNap() *Nap {
	n := NewNap()
	n.nudge = new(nudge)
	return n
}

// Stop releases the timer and the file descriptor.
func (n *Nap) Stop() {
	n.timer.Stop()
	if n.nudge != nil {
		n.nudge.close()
	}
}

// Sleep returns false when wake has a token or until is reached. It returns true within a
// second of a step of the wall clock. A zero until never comes, and then no step ends Sleep.
func (n *Nap) Sleep(wake <-chan struct{}, until time.Time) (step bool) {
	if until.IsZero() {
		<-wake
		return false
	}
	start := time.Now()
	for now := start; ; now = time.Now() {
		if stepped(start, now) {
			return true
		}
		left := until.Sub(now)
		if left <= 0 {
			return false
		}
		n.timer.Reset(min(left, compareEvery))
		if n.nudge != nil && left <= compareEvery && !n.nudgeAt.Equal(until) {
			n.nudge.arm(left) // after the timer, so that it does not fire first
			n.nudgeAt = until
		}
		select {
		case <-wake:
			n.timer.Stop()
			return false
		case <-n.timer.C:
			n.nudgeAt = time.Time{}
		}
	}
}

// stepped reports whether the wall clock has stepped between start and now.
func stepped(start, now time.Time) bool {
	return apart(start.Round(0), now.Round(0), now.Sub(start))
}

// apart reports whether the time between two readings of the wall clock differs from elapsed
// by more than clockDrift.
func apart(from, to time.Time, elapsed time.Duration) bool {
	return (to.Sub(from) - elapsed).Abs() > clockDrift
}
