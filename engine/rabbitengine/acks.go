package rabbitengine

import (
	"sync"
	"time"
)

// acks are the acknowledgements sent on channels. A channel tells a quorum queue of 32 that
// the queue has not written yet, by default, and keeps the rest for later: whoever ends the
// channel then, in whatever way, loses those, and their messages come again. The broker says
// nothing of it, so that one can only give it time.
type acks struct {
	mu   sync.Mutex
	n    int // that were sent, with no long pause between
	last time.Time
}

const (
	acksAtOnce = 16                     // which no channel keeps, with as many commands besides
	acksWithin = 500 * time.Millisecond // what is kept then has been passed on
)

// sent notes that one was.
func (a *acks) sent() {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.last) > acksWithin {
		a.n = 0
	}
	a.n, a.last = a.n+1, now
}

// rest is how long the channels are to stay.
func (a *acks) rest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n <= acksAtOnce {
		return 0
	}
	return time.Until(a.last.Add(acksWithin))
}

// wait waits as long as that, unless they end before.
func (a *acks) wait(ended <-chan struct{}) {
	rest := a.rest()
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	}
}
