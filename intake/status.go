package intake

import (
	"errors"
	"sync"
	"sync/atomic"
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

// Status is what an intake does, and has done since its runner began.
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

// counters are Counts while they change.
type counters struct {
	taken, pushed, doubles, cancelled, missed, refused, redelivered, doubtful atomic.Int64
}

func (c *counters) counts() Counts {
	return Counts{
		Taken: c.taken.Load(), Pushed: c.pushed.Load(), Doubles: c.doubles.Load(),
		Cancelled: c.cancelled.Load(), Missed: c.missed.Load(), Refused: c.refused.Load(),
		Redelivered: c.redelivered.Load(), Doubtful: c.doubtful.Load(),
	}
}

// health is the state of an intake: what its source says, and whether the store takes
// messages.
type health struct {
	mu        sync.Mutex
	receiving bool
	source    *Trouble // nil: none
	store     *Trouble
	waiting   int // batches that the store does not take
	refused   string
	state     State
	since     time.Time
}

// set changes the health. It reports whether the state, or the code of its trouble, has
// changed.
func (h *health) set(change func()) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, code := h.state, h.trouble().code()
	change()
	if h.waiting == 0 {
		h.store = nil
	}
	switch {
	case h.trouble() != nil:
		h.state = Failing
	case h.receiving:
		h.state = Running
	default:
		h.state = Connecting
	}
	if h.state != before {
		h.since = time.Now()
	}
	return h.state != before || h.trouble().code() != code
}

// trouble returns the trouble to show, or nil. The source's comes first: it says what to do
// elsewhere.
func (h *health) trouble() *Trouble {
	if h.source != nil {
		return h.source
	}
	return h.store
}

func (t *Trouble) code() string {
	if t == nil {
		return ""
	}
	return t.Code
}

// asTrouble returns the trouble of a source's error, or nil.
func asTrouble(err error) *Trouble {
	if err == nil {
		return nil
	}
	if t, ok := errors.AsType[*Trouble](err); ok {
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
