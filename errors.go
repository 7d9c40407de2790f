package tarry

import (
	"errors"
	"fmt"

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

// ErrUnconfirmed means that the outcome of a message is unknown: its result was sent to the
// engine, the answer was lost, and when the result was sent again the lease was over. Most
// likely the first one counted. Otherwise another worker or a cancel has decided.
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
	Stack []byte // of its goroutine, as debug.Stack formats it
}

// Error names the panic value.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// ErrHandlerTimeout is the cause of a handler's context after HandlerTimeout; it is a
// context.DeadlineExceeded.
var ErrHandlerTimeout = work.ErrHandlerTimeout
