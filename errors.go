package tarry

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/work"
)

// Error is the error of every call of this package: the operation, the message concerned,
// and a hint on what to do. It wraps one of the errors below, for errors.Is.
type Error = engine.Error

// The errors that programs act on.
var (
	ErrInvalid      = engine.ErrInvalid      // the call's arguments are wrong; Error.Hint says how
	ErrUnauthorized = engine.ErrUnauthorized // the server wants a token
	ErrForbidden    = engine.ErrForbidden    // the token does not allow this
	ErrNotFound     = engine.ErrNotFound     // no such message
	ErrExists       = engine.ErrExists       // a live message holds the key, or it is remembered
	ErrLeased       = engine.ErrLeased       // too late: a worker holds the message
	ErrStale        = engine.ErrStale        // the settings or the message's state have changed since they were read
	ErrNotDue       = engine.ErrNotDue       // claimed too early, or its queue is paused
	ErrLeaseLost    = engine.ErrLeaseLost    // the lease was settled, taken over or cancelled
	ErrTooLarge     = engine.ErrTooLarge     // the body is over the limit
	ErrLimit        = engine.ErrLimit        // a limit of the store or of the queue is reached
	ErrNoSpace      = engine.ErrNoSpace      // the disk is full; also an ErrLimit
	ErrUnsupported  = engine.ErrUnsupported  // this engine cannot do that
	ErrUnavailable  = engine.ErrUnavailable  // the store does not answer
	ErrDamaged      = engine.ErrDamaged      // stored data is corrupt; Error.Hint says what repairs it
	ErrClosed       = engine.ErrClosed       // the client is closed
)

// ErrUnconfirmed means that the outcome of a message is unknown: the engine's answer to its
// result was lost, and when the worker sent the result again, the lease was over. Most
// likely the result counted the first time. Otherwise another worker or a cancel has decided.
var ErrUnconfirmed = work.ErrUnconfirmed

// JoinErrors returns the errors of the results of one call as one; see errors.Join. It is
// nil when none failed.
func JoinErrors[R Pushed | CancelResult | SettleResult](results []R) error {
	var errs []error
	for i := range results {
		switch r := any(&results[i]).(type) {
		case *Pushed:
			errs = append(errs, r.Err)
		case *CancelResult:
			errs = append(errs, r.Err)
		case *SettleResult:
			errs = append(errs, r.Err)
		}
	}
	return errors.Join(errs...)
}

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the handler's goroutine, as debug.Stack formats it
}

// Error names the panic value.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// ErrHandlerTimeout is the cause of a handler's context after HandlerTimeout; it is a
// context.DeadlineExceeded.
var ErrHandlerTimeout = work.ErrHandlerTimeout

// Snooze, returned by a handler, postpones the message by d without counting the attempt.
// It is for a message that cannot be handled now although nothing went wrong. It may be
// wrapped in other errors.
func Snooze(d time.Duration) error {
	d = max(d, 0)
	return &work.Verdict{Do: engine.Snooze, In: &d}
}

// RetryIn, returned by a handler, retries the message after d instead of its own backoff.
// err says what went wrong and may be nil. The attempt counts: after the last one the
// message is dead.
func RetryIn(d time.Duration, err error) error {
	d = max(d, 0)
	return &work.Verdict{Do: engine.Retry, In: &d, Reason: err}
}

// Bury, returned by a handler, makes the message dead at once: it is hopeless. err
// says why and may be nil.
func Bury(err error) error {
	return &work.Verdict{Do: engine.Bury, Reason: err}
}

// Settled, returned by a handler, says that the handler has settled its message itself,
// with Message.Settle, and the worker must not. If that is not true, the message comes again
// after its lease has lapsed, and the attempt counts. Settled may be wrapped in other
// errors, which are not reported.
//
// If a handler settles its message but then panics or returns anything else, the message
// stays settled and the worker reports a lost lease.
func Settled() error { return settledItself }

var settledItself = &work.Verdict{Do: work.ByHandler}

// Verdict returns what a worker does with a message when its handler returns err, for
// middleware and tests: DoAck for nil, DoSnooze, DoRetry or DoBury; 0 for Settled. It
// ignores whether attempts are left and whether the worker drains.
func Verdict(err error) Action { return work.Settlement("", err).Do }

// RetryPolicy is how a worker retries messages after their handler failed, when their push
// set no policy. The first of these that is set applies:
//
//   - when to retry: RetryIn, returned by the handler; the message's own Backoff; the
//     policy's; 1 s doubling up to 1 h, ±10 %;
//   - how often: the message's own MaxAttempts, unless that is the default of 20; the
//     policy's; 20.
//
// The handler finds the result in its message: MaxAttempts, Backoff, LastAttempt. The
// policy applies to failed handlers only. A lapsed lease counts as an attempt, and the
// store itself gives up after the message's own MaxAttempts.
type RetryPolicy struct {
	// MaxAttempts is how many attempts a message gets before it is dead: 1 to 20, since the
	// store grants no more. 0: not set.
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
