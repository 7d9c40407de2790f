package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

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
