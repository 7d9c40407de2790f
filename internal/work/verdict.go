package work

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Verdict is an error that tells the worker what to do with the message.
type Verdict struct {
	Do     engine.Action
	In     *time.Duration // how long until it comes back; nil: not given
	Reason error
}

// ByHandler means that the handler has settled its message itself.
const ByHandler engine.Action = 0

// Error names the action and its reason.
func (v *Verdict) Error() string {
	var s string
	switch v.Do {
	case ByHandler:
		return "settled by its handler"
	case engine.Snooze:
		s = fmt.Sprintf("snooze for %s", *v.In)
	case engine.Retry:
		s = fmt.Sprintf("retry in %s", *v.In)
	default:
		s = "bury"
	}
	if v.Reason != nil {
		s += ": " + v.Reason.Error()
	}
	return s
}

// Unwrap returns the reason.
func (v *Verdict) Unwrap() error { return v.Reason }

// ErrorType names the type of the reason, for traces.
func (v *Verdict) ErrorType() string {
	if v.Reason == nil {
		return v.Do.String()
	}
	return fmt.Sprintf("%T", v.Reason)
}

// Settlement turns the error of a handler into a settlement.
func Settlement(token string, err error) (s engine.Settlement) {
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
	if v, ok := errors.AsType[*Verdict](err); ok {
		s.Do = v.Do
		if v.In != nil {
			s.When = &engine.When{In: *v.In}
		}
	}
	if s.Do == engine.Retry || s.Do == engine.Bury {
		s.Reason = reason(err)
	}
	return s
}

// reason returns the text of err to store. For a verdict this is the text of its reason
// alone, since the action is stored anyway.
func reason(err error) string {
	if v, ok := err.(*Verdict); ok && v.Reason != nil {
		err = v.Reason
	}
	return engine.KeptReason(err.Error())
}

// Retry is the policy for failed messages that have none of their own.
type Retry struct {
	MaxAttempts uint32          // 0: not set
	Backoff     []time.Duration // empty: not set
}

func (r *Retry) given() bool { return r.MaxAttempts > 0 || len(r.Backoff) > 0 }

// fill sets the fields that a message's own policy leaves unset.
func (r *Retry) fill(p *engine.Policy) {
	if r.MaxAttempts > 0 && p.MaxAttempts == engine.DefaultMaxAttempts {
		p.MaxAttempts = r.MaxAttempts
	}
	if len(r.Backoff) > 0 && len(p.Backoff) == 0 {
		p.Backoff = r.Backoff
	}
}

// retried applies a message's policy, as fill completed it, to its retry. A message without
// attempts left is buried, and the Kind is Died.
func retried(s engine.Settlement, m *engine.Info) (engine.Settlement, Kind) {
	switch {
	case m.Attempt >= m.MaxAttempts:
		s.Do, s.When = engine.Bury, nil
		return s, Died
	case s.When == nil && len(m.Backoff) > 0:
		s.When = &engine.When{In: m.RetryDelay(m.Attempt)}
	}
	return s, 0
}
