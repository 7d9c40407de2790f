package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// stuckAfter is how long after the end of its context a handler counts as stuck, if it has
// not returned.
const stuckAfter = 5 * time.Second

// How long a message is snoozed if it comes again while its handler still runs here: at most,
// and at first if the handler has the token. It may have settled the message, or replaced it,
// and be about to return.
const (
	inHandPause  = 5 * time.Second
	returnsPause = 10 * time.Millisecond
)

// errInHand is why putOff did not let a message start.
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
	pause := d.w.cfg.InHand.pause(messageID{d.h.Queue, d.lease.ID})
	if pause == inHandPause {
		d.w.trouble.Note(cameAgain, d.lease.Queue, d.attrs(errInHand)...)
	}
	return engine.Settlement{Token: d.lease.Token, Do: engine.Snooze, When: &engine.When{In: pause}}
}

// InHand is the set of messages with a running handler in this process, for all workers and
// claims of a client. Without it a handler that ignores the end of its context would be
// started again after each lapse of its lease, and take another slot each time.
type InHand struct {
	mu  sync.Mutex
	all map[messageID]inHand
}

// inHand is a message whose handler runs.
type inHand struct {
	d     *Delivery
	pause time.Duration // of its next snooze, if it comes again; 0: none yet
}

// NewInHand returns an empty set.
func NewInHand() *InHand { return &InHand{all: make(map[messageID]inHand)} }

type messageID struct {
	queue string
	id    engine.ID
}

// take adds the message of a delivery, and reports false if its handler runs already.
func (h *InHand) take(m messageID, d *Delivery) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, runs := h.all[m]
	if !runs {
		h.all[m] = inHand{d: d}
	}
	return !runs
}

// pause returns for how long to snooze a message that came again.
func (h *InHand) pause(m messageID) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	x, runs := h.all[m]
	if !runs {
		return returnsPause // it has just returned
	}
	if x.pause = min(max(2*x.pause, returnsPause), inHandPause); !x.d.tokenOut.Load() {
		x.pause = inHandPause
	}
	h.all[m] = x
	return x.pause
}

// leave removes a message after its handler has returned.
func (h *InHand) leave(m messageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, m)
}
