// Package calls is about the calls of an engine, on both sides of it.
//
// On the way to an engine, calls are metered (Engine). A caller can leave a call while the
// engine hangs (Leaver). Concurrent calls become one (Coalescer). The valid items of a call are
// sifted from the invalid ones (Sift). Errors name the operation and the message (Fail).
//
// Inside an engine, calls are admitted while it is open (Gate), and their items are grouped
// (GroupBy). Calls over a network that failed are repeated, or not (Fate). The functions
// passed to Watch are called with hints (Watchers).
package calls

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// Overdue hides the internal deadline of a shared call: a caller that set no deadline must
// not see DeadlineExceeded.
func Overdue(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return overdue(err)
	}
	return err
}

const hintWithdrawn = "nothing was done: the call was still queued; repeating it is safe"

// Fail adds the operation and the message to an error from below, unless it has them
// already.
func Fail(op string, ref engine.Ref, err error) error {
	if err == nil {
		return nil
	}
	if errors.As(err, new(*engine.Error)) {
		return err
	}
	e := &engine.Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: err}
	if w, ok := errors.AsType[*Withdrawn](err); ok {
		e.Err, e.Hint = w.Err, hintWithdrawn
	} else if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || err == ErrOverdue {
		e.Hint = engine.HintUnknown
	}
	return e
}

// FailedAll returns n results that all failed with err.
func FailedAll(n int, err error) []engine.Settled {
	out := make([]engine.Settled, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}
