package tarry

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// verdict is what a handler wants to become of its message.
type verdict struct {
	do  engine.Action
	in  *time.Duration
	err error
}

// Snooze, returned by a handler, puts the message off for d and gives the attempt
// back: not now, but nothing went wrong. Wrapped in other errors it works as well.
func Snooze(d time.Duration) error {
	d = max(d, 0)
	return &verdict{do: engine.Snooze, in: &d}
}

// RetryIn, returned by a handler, retries the message after d instead of its own
// backoff. err says what went wrong and may be nil. The attempt counts: when it was
// the last one the message is dead.
func RetryIn(d time.Duration, err error) error {
	d = max(d, 0)
	return &verdict{do: engine.Retry, in: &d, err: err}
}

// Bury, returned by a handler, makes the message dead at once: it is hopeless. err
// says why and may be nil.
func Bury(err error) error {
	return &verdict{do: engine.Bury, err: err}
}

// byHandler is no action: the handler has settled its message itself.
const byHandler engine.Action = 0

// Settled, returned by a handler, says that it has settled its message by itself, with
// Message.Token: the worker has nothing more to tell the engine. When that is not so
// the message comes again once its lease has lapsed, its attempt counted. Wrapped in other
// errors it works as well; these are not reported.
//
// A handler that has settled its message and returns anything else, or panics, harms
// nobody: its message stays settled, and the worker reports a lost lease.
func Settled() error { return settledItself }

var settledItself = &verdict{do: byHandler}

// Verdict is what a worker does with a message when its handler returns err, for
// middleware and tests: DoAck of nil, DoSnooze, DoRetry or DoBury; 0 of Settled. That a
// retry finds the attempts used up, or that the worker drains, it does not know.
func Verdict(err error) Action { return settlement("", err).Do }

// Error says what is wanted and why.
func (v *verdict) Error() string {
	var s string
	switch v.do {
	case byHandler:
		return "settled by its handler"
	case engine.Snooze:
		s = fmt.Sprintf("snooze for %s", *v.in)
	case engine.Retry:
		s = fmt.Sprintf("retry in %s", *v.in)
	default:
		s = "bury"
	}
	if v.err != nil {
		s += ": " + v.err.Error()
	}
	return s
}

// Unwrap returns what went wrong.
func (v *verdict) Unwrap() error { return v.err }

// ErrorType names the type of what went wrong, for traces.
func (v *verdict) ErrorType() string {
	if v.err == nil {
		return v.do.String()
	}
	return fmt.Sprintf("%T", v.err)
}

// settlement turns what a handler returned into what the engine is told.
func settlement(token string, err error) (s engine.Settlement) {
	s = engine.Settlement{Token: token, Do: engine.Ack}
	if err == nil {
		return s
	}
	// An error's methods are the user's code and may panic.
	defer func() {
		if p := recover(); p != nil {
			s = engine.Settlement{Token: token, Do: engine.Retry, Reason: fmt.Sprintf("an error of type %T, whose methods panic: %v", err, p)}
		}
	}()
	s.Do = engine.Retry
	if v, ok := errors.AsType[*verdict](err); ok {
		s.Do = v.do
		if v.in != nil {
			s.When = &engine.When{In: *v.in}
		}
	}
	if s.Do == engine.Retry || s.Do == engine.Bury {
		s.Reason = reason(err)
	}
	return s
}

// reason is what is kept of an error: of a verdict its cause, without the words
// that the engine's action already says.
func reason(err error) string {
	if v, ok := err.(*verdict); ok && v.err != nil {
		err = v.err
	}
	return engine.KeptReason(err.Error())
}
