package rules

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Verdict is what becomes of a message when its lease is settled.
type Verdict struct {
	State    engine.State // Gone, Dead or Leased; Scheduled: it waits for Due, which may be past
	Due      int64
	Attempt  uint32
	Priority uint32
	Reason   string // of a Retry or Bury
}

// Settle returns the verdict on a message with this policy, due time and attempt.
func Settle(s *engine.Settlement, p *engine.Policy, due int64, attempt uint32, now time.Time) Verdict {
	v := Verdict{State: engine.Scheduled, Due: due, Attempt: attempt, Priority: p.Priority}
	switch s.Do {
	case engine.Ack:
		v.State = engine.Gone
	case engine.Extend:
		v.State = engine.Leased
	case engine.Bury:
		v.State, v.Reason = engine.Dead, s.KeptReason()
	case engine.Retry:
		v.Reason = s.KeptReason()
		switch {
		case attempt >= p.MaxAttempts:
			v.State = engine.Dead
		case s.When != nil:
			v.Due = s.When.Resolve(now)
		default:
			v.Due = engine.When{In: p.RetryDelay(attempt)}.Resolve(now)
		}
	case engine.Snooze:
		v.Due, v.Attempt = s.When.Resolve(now), attempt-min(attempt, 1)
	case engine.Release:
		v.Attempt = attempt - min(attempt, 1)
	}
	if s.Priority != nil && v.State != engine.Gone && v.State != engine.Leased {
		v.Priority = *s.Priority
	}
	return v
}

// Deadline returns the end of a lease that begins now, with this ttr; 0: the message's own. It
// is in the future.
func Deadline(p *engine.Policy, id engine.ID, attempt uint32, ttr time.Duration, now time.Time) int64 {
	if ttr <= 0 {
		ttr = p.TTR
	}
	return max(now.UnixMilli()+1, engine.When{In: ttr + p.Spread(id, attempt)}.Resolve(now))
}
