package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A handler is stuck when it has not returned this long after the end of its context.
const stuckAfter = 5 * time.Second

// inHandPause is for how long a message is snoozed that comes again while its handler still
// runs here.
const inHandPause = 5 * time.Second

// errInHand is why a message was not started.
var errInHand = fmt.Errorf("%w: its handler still runs in this process", engine.ErrLeased)

// stick marks a handler as stuck, and reports it once. Called with Worker.mu held.
func (d *Delivery) stick(now time.Time) {
	if d.stage == stuck {
		return
	}
	d.stage = stuck
	cause := context.Cause(d.ctx)
	d.w.observe(d.event(Stuck, now.Sub(d.started), cause))
	d.w.trouble.Note(stuckHandler, d.lease.Queue, append(d.attrs(cause), "ran", now.Sub(d.started))...)
}

// putOff returns the settlement of a message that came again while its handler still runs
// here: a snooze, which counts no attempt. For a claim it is a release, since the caller
// decides when to try again.
func (d *Delivery) putOff() engine.Settlement {
	d.err = errInHand
	if d.claim != nil {
		return release(d)
	}
	d.w.trouble.Note(cameAgain, d.lease.Queue, d.attrs(errInHand)...)
	pause := inHandPause
	return engine.Settlement{Token: d.lease.Token, Do: engine.Snooze, When: &engine.When{In: pause}}
}

// InHand is the set of messages whose handlers run in this process, for all workers and
// claims of a client. It keeps a handler that ignores the end of its context from being
// started again: each lapse of its lease would take another slot.
type InHand struct {
	mu  sync.Mutex
	all map[messageID]struct{}
}

// NewInHand returns an empty set.
func NewInHand() *InHand { return &InHand{all: make(map[messageID]struct{})} }

type messageID struct {
	queue string
	id    engine.ID
}

// take adds a message, and reports false if its handler runs already.
func (h *InHand) take(m messageID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.all)
	h.all[m] = struct{}{}
	return len(h.all) > n
}

// leave removes a message whose handler has returned.
func (h *InHand) leave(m messageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, m)
}
