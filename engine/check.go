package engine

import (
	"strings"
	"time"
)

// The bounds of questions, the same for every engine.
const (
	MaxPage  = 1000   // messages on a page of a list
	MaxSteps = 10_000 // buckets of a forecast
)

// Check returns an ErrInvalid that says what is wrong with a query but for After,
// which only its engine can read; nil: nothing.
func (q *ListQuery) Check() error {
	fault := &Error{Op: "list", Queue: q.Queue, Err: ErrInvalid}
	switch {
	case !q.State.Live() && q.State != Dead:
		fault.Hint = "the state is scheduled, ready, leased or dead"
	case q.Limit < 1 || q.Limit > MaxPage:
		fault.Hint = "the limit is 1 to 1000"
	default:
		return nil
	}
	return fault
}

// CheckForecast returns an ErrInvalid unless step and span are as Forecaster asks.
func CheckForecast(queue string, step, span time.Duration) error {
	if step < time.Minute || step%time.Minute != 0 || span < step || span%step != 0 || span/step > MaxSteps {
		return &Error{Op: "forecast", Queue: queue, Err: ErrInvalid,
			Hint: "the step is a whole number of minutes, the span a whole number of steps, at most 10000"}
	}
	return nil
}

// Check returns an ErrInvalid unless a settlement says what to do; its token is the
// engine's matter.
func (s *Settlement) Check() error {
	if s.Do < Ack || s.Do > Extend || s.Do == Snooze && s.When == nil {
		return &Error{Op: "settle", Err: ErrInvalid,
			Hint: "settle with ack, retry, snooze (and until when), release, bury or extend"}
	}
	return nil
}

// KeptReason is the reason cut to MaxReason bytes, with no half of a character left.
func (s *Settlement) KeptReason() string {
	if len(s.Reason) <= MaxReason {
		return s.Reason
	}
	return strings.ToValidUTF8(s.Reason[:MaxReason], "")
}
