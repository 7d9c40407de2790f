package enginetest

import (
	"sync"
	"time"
)

// Clock is a clock that only moves when told to, for engines that accept an injected one. It
// is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a fixed instant, a whole minute of the
// year 2030.
func NewClock() *Clock {
	return &Clock{now: time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, backwards when d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set sets the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t.UTC()
}
