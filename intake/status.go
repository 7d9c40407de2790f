package intake

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
)

// State says whether an intake receives.
type State string

// The states of an intake.
const (
	Connecting State = "connecting"
	Running    State = "running"
	Failing    State = "failing"
)

// Status is what an intake does, and has done since it was set or changed.
type Status struct {
	Name  string
	Queue string
	State State
	Since time.Time // of the state

	// When Failing: a code for programs, what is wrong, and what to do.
	Code, Error, Hint string

	Counts
	Unacked     int64  // taken, and not settled yet
	LastRefused string // why the last message was refused
}

// Counts count the messages of an intake.
type Counts struct {
	Taken       int64 // handed over by the source
	Pushed      int64 // of these, new or changed in the store
	Doubles     int64 // of these, found in the store already and not pushed again
	Cancelled   int64 // messages of the store that one of these cancelled
	Missed      int64 // of these, cancels that found no message or came too late
	Refused     int64 // of these, set aside at the source
	Redelivered int64 // of these, handed over before
	Doubtful    int64 // pushed again without a key after a call with an unknown outcome: perhaps twice
}

// health is a Status while it changes.
type health struct {
	mu sync.Mutex
	Status
	receiving bool
	source    *Trouble // nil: none
	store     *Trouble // the latest, while batches wait
	waiting   int      // batches that the store does not take
}

// count changes what is counted.
func (h *health) count(change func(st *Status)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.Status)
}

// status returns the current Status.
func (h *health) status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Status
}

// report records what the source or the store says. It reports whether the state, or the
// code of its trouble, has changed.
func (h *health) report(change func(h *health)) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
	if h.waiting == 0 {
		h.store = nil
	}
	state, trouble := Connecting, cmp.Or(h.source, h.store) // what the source says comes first
	switch {
	case trouble != nil:
		state = Failing
	case h.receiving:
		state, trouble = Running, new(Trouble)
	default:
		trouble = new(Trouble)
	}
	if state != h.State {
		h.Since = time.Now()
	}
	changed = state != h.State || trouble.Code != h.Code
	h.State, h.Code, h.Error, h.Hint = state, trouble.Code, "", trouble.Hint
	if trouble.Err != nil {
		h.Error = trouble.Err.Error()
	}
	return changed
}

// asTrouble returns the trouble of a source's error, or nil.
func asTrouble(err error) *Trouble {
	if t, ok := errors.AsType[*Trouble](err); ok || err == nil {
		return t
	}
	return &Trouble{Code: CodeFailed, Err: err}
}

// storeTrouble returns the trouble of a failed push.
func storeTrouble(err error) *Trouble {
	t := &Trouble{Code: CodeStore, Err: err, Hint: "nothing is acked meanwhile; the intake tries again"}
	if e, ok := errors.AsType[*tarry.Error](err); ok && e.Hint != "" {
		t.Err, t.Hint = e.Err, e.Hint
	}
	return t
}
