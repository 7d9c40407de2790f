package tarry

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// verdict is an error that tells the worker what to do with the message.
type verdict struct {
	do  engine.Action
	in  *time.Duration
	err error
}

// Snooze, returned by a handler, postpones the message by d without counting the attempt:
// not now, but nothing went wrong. It may be wrapped in other errors.
func Snooze(d time.Duration) error {
	d = max(d, 0)
	return &verdict{do: engine.Snooze, in: &d}
}

// RetryIn, returned by a handler, retries the message after d instead of its own backoff.
// err says what went wrong and may be nil. The attempt counts: after the last one the
// message is dead.
func RetryIn(d time.Duration, err error) error {
	d = max(d, 0)
	return &verdict{do: engine.Retry, in: &d, err: err}
}

// Bury, returned by a handler, makes the message dead at once: it is hopeless. err
// says why and may be nil.
func Bury(err error) error {
	return &verdict{do: engine.Bury, err: err}
}

// byHandler means that the handler has settled its message itself.
const byHandler engine.Action = 0

// Settled, returned by a handler, says that the handler has settled its message itself,
// with Message.Settle, and the worker must not. If that is not true, the message comes again
// after its lease has lapsed, and the attempt counts. Settled may be wrapped in other
// errors, which are not reported.
//
// If a handler has settled its message and returns anything else, or panics, the message
// stays settled and the worker reports a lost lease.
func Settled() error { return settledItself }

var settledItself = &verdict{do: byHandler}

// Verdict returns what a worker does with a message when its handler returns err, for
// middleware and tests: DoAck for nil, DoSnooze, DoRetry or DoBury; 0 for Settled. It
// ignores whether attempts are left and whether the worker drains.
func Verdict(err error) Action { return settlement("", err).Do }

// Error names the action and its reason.
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

// Unwrap returns the reason.
func (v *verdict) Unwrap() error { return v.err }

// ErrorType names the type of the reason, for traces.
func (v *verdict) ErrorType() string {
	if v.err == nil {
		return v.do.String()
	}
	return fmt.Sprintf("%T", v.err)
}

// settlement turns the error of a handler into a settlement.
func settlement(token string, err error) (s engine.Settlement) {
	s = engine.Settlement{Token: token, Do: engine.Ack}
	if err == nil {
		return s
	}
	// The methods of err are user code and may panic.
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

// reason returns the text of err to store; for a verdict that of its reason alone, since
// the action is stored anyway.
func reason(err error) string {
	if v, ok := err.(*verdict); ok && v.err != nil {
		err = v.err
	}
	return engine.KeptReason(err.Error())
}
