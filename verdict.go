package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/work"
)

// Snooze, returned by a handler, postpones the message by d without counting the attempt:
// not now, but nothing went wrong. It may be wrapped in other errors.
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
// If a handler has settled its message and returns anything else, or panics, the message
// stays settled and the worker reports a lost lease.
func Settled() error { return settledItself }

var settledItself = &work.Verdict{Do: work.ByHandler}

// Verdict returns what a worker does with a message when its handler returns err, for
// middleware and tests: DoAck for nil, DoSnooze, DoRetry or DoBury; 0 for Settled. It
// ignores whether attempts are left and whether the worker drains.
func Verdict(err error) Action { return work.Settlement("", err).Do }

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
