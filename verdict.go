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

// RetryPolicy is how a worker retries messages whose handler failed, when their push set no
// policy. The first of these that is set applies:
//
//   - when to retry: RetryIn, returned by the handler; the message's own Backoff; the
//     policy's; 1 s doubling up to 1 h, ±10 %;
//   - how often: the message's own MaxAttempts, if it is another number than the
//     default of 20; the policy's; 20.
//
// The handler finds the result in its message: MaxAttempts, Backoff, LastAttempt. The
// policy applies to failed handlers only. A lapsed lease counts as an attempt, and the
// store itself gives up after the message's own MaxAttempts.
type RetryPolicy struct {
	// MaxAttempts is how many attempts a message gets before it is dead: 1 to 20, which is
	// the most that the store grants. 0: not set.
	MaxAttempts uint32

	// Backoff is the delay after the first, second, … failed attempt; the last entry
	// repeats. At most 64, none negative. Empty: not set.
	Backoff []time.Duration
}

func (r *RetryPolicy) check(op string) error {
	if r.MaxAttempts > DefaultMaxAttempts {
		return engine.Invalid(op, Ref{}, "the retry policy's max attempts are %d; allowed are 1 to %d", r.MaxAttempts, DefaultMaxAttempts)
	}
	return engine.CheckBackoff(op, Ref{}, r.Backoff)
}

func (r *RetryPolicy) given() bool { return r.MaxAttempts > 0 || len(r.Backoff) > 0 }

// fill sets what a message's own policy leaves unset.
func (r *RetryPolicy) fill(p *engine.Policy) {
	if r.MaxAttempts > 0 && p.MaxAttempts == DefaultMaxAttempts {
		p.MaxAttempts = r.MaxAttempts
	}
	if len(r.Backoff) > 0 && len(p.Backoff) == 0 {
		p.Backoff = r.Backoff
	}
}

// retried applies a message's policy, filled in by the worker's, to its retry. A message
// without attempts left has Died.
func retried(s engine.Settlement, m *Info) (engine.Settlement, EventKind) {
	switch {
	case m.Attempt >= m.MaxAttempts:
		s.Do, s.When = engine.Bury, nil
		return s, Died
	case s.When == nil && len(m.Backoff) > 0:
		s.When = &engine.When{In: m.RetryDelay(m.Attempt)}
	}
	return s, 0
}
