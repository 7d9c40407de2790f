package rabbitengine

import (
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// acks are the acknowledgements sent on the channels of a session. By default, a channel has at most 32 of
// them in flight to a quorum queue and holds the rest. Acks still held when the channel
// closes are lost, and their messages come again. The broker does not report this, so the
// only remedy is to keep the channel open for a while.
type acks struct {
	mu   sync.Mutex
	n    int // sent without a long pause
	last time.Time
}

const (
	acksAtOnce = 16                     // few enough for channels to pass on at once
	acksWithin = 500 * time.Millisecond // acks held by channels are passed on by then
)

// sent records an ack.
func (a *acks) sent() {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.last) > acksWithin {
		a.n = 0
	}
	a.n, a.last = a.n+1, now
}

// rest returns how long the channels must still stay open.
func (a *acks) rest() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n <= acksAtOnce {
		return 0
	}
	return time.Until(a.last.Add(acksWithin))
}

// wait waits that long, or until the channels are closed.
func (a *acks) wait(ended <-chan struct{}) {
	if rest := a.rest(); rest > 0 {
		duration.Await(ended, rest)
	}
}
