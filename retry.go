package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// RetryPolicy is how a worker retries messages whose handler failed, where those who
// pushed them have said nothing. What counts, the first that is given:
//
//   - when to retry: RetryIn, returned by the handler; the message's own Backoff; the
//     policy's; 1 s doubling up to 1 h, ±10 %;
//   - how often: the message's own MaxAttempts, if it is another number than the
//     default of 20; the policy's; 20.
//
// The handler finds what counts in its message: MaxAttempts, Backoff, LastAttempt. The
// policy has no say in what happens without a handler: a lease that lapses is an
// attempt, and the store itself gives up after the MaxAttempts of the message.
type RetryPolicy struct {
	// MaxAttempts is how many attempts a message gets before it is dead: 1 to 20, since
	// it cannot be more than what the store grants. 0: says nothing.
	MaxAttempts uint32

	// Backoff is how long a message rests after its first, second, … failed attempt;
	// the last entry repeats. At most 64, none negative. Empty: says nothing.
	Backoff []time.Duration
}

func (r *RetryPolicy) check(op string) error {
	if r.MaxAttempts > DefaultMaxAttempts {
		return engine.Invalid(op, Ref{}, "the retry policy's max attempts are %d; allowed are 1 to %d", r.MaxAttempts, DefaultMaxAttempts)
	}
	return engine.CheckBackoff(op, Ref{}, r.Backoff)
}

// fill sets what a message's own policy leaves open, and reports whether that is
// anything.
func (r *RetryPolicy) fill(p *engine.Policy) (filled bool) {
	if r.MaxAttempts > 0 && p.MaxAttempts == DefaultMaxAttempts {
		p.MaxAttempts, filled = r.MaxAttempts, true
	}
	if len(r.Backoff) > 0 && len(p.Backoff) == 0 {
		p.Backoff, filled = r.Backoff, true
	}
	return filled
}

// retried makes of the retry of a message what the worker's policy says. It reports
// whether the message has had its attempts.
func retried(s engine.Settlement, m *Info) (_ engine.Settlement, spent bool) {
	switch {
	case m.Attempt >= m.MaxAttempts:
		s.Do, s.When = engine.Bury, nil
		return s, true
	case s.When == nil && len(m.Backoff) > 0:
		s.When = &engine.When{In: m.RetryDelay(m.Attempt)}
	}
	return s, false
}
