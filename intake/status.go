package intake

import (
	"cmp"
	"errors"
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

// wrong is what keeps an intake from receiving, or from passing on all. What comes first is
// told.
type wrong struct{ source, store, ack, aside error }

// report changes what is wrong, and logs a new state.
func (j *job) report(change func(*wrong)) {
	j.mu.Lock()
	before := j.status
	change(&j.wrong)
	st := &j.status
	st.State, st.Code, st.Error, st.Hint = Running, "", "", ""
	if err := cmp.Or(j.wrong.source, j.wrong.store, j.wrong.ack, j.wrong.aside); err != nil {
		t, ok := errors.AsType[*Trouble](err)
		if !ok {
			t = &Trouble{Code: CodeFailed, Err: err}
		}
		st.State, st.Code, st.Error, st.Hint = Failing, t.Code, t.Err.Error(), t.Hint
	}
	if st.State != before.State {
		st.Since = time.Now()
	}
	now := *st
	j.mu.Unlock()
	switch {
	case now.State == before.State && now.Code == before.Code:
	case now.State == Running:
		j.log.Info("the intake receives")
	default:
		j.log.Warn("the intake fails", "code", now.Code, "error", now.Error, "hint", now.Hint)
	}
}

// count changes what is counted.
func (j *job) count(change func(st *Status)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.status)
}

// storeTrouble returns the trouble of a failed push.
func storeTrouble(err error) error {
	t := &Trouble{Code: CodeStore, Err: err, Hint: "nothing is acked meanwhile; the intake tries again"}
	if e, ok := errors.AsType[*tarry.Error](err); ok && e.Hint != "" {
		t.Err, t.Hint = e.Err, e.Hint
	}
	return t
}
