package engine

import (
	"fmt"
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
	if !q.State.Live() && q.State != Dead {
		return invalid("list", Ref{Queue: q.Queue}, "the state to list is scheduled, ready, leased or dead")
	}
	return CheckLimit("list", q.Queue, q.Limit)
}

// CheckLimit returns an ErrInvalid unless a page of so many is allowed.
func CheckLimit(op, queue string, limit int) error {
	if limit < 1 || limit > MaxPage {
		return invalid(op, Ref{Queue: queue}, "the limit is %d; allowed are 1 to %d", limit, MaxPage)
	}
	return nil
}

// CheckForecast returns an ErrInvalid unless step and span are as Forecaster asks.
func CheckForecast(queue string, step, span time.Duration) error {
	switch {
	case step < time.Minute || step%time.Minute != 0:
		return invalid("forecast", Ref{Queue: queue}, "the step %s is not a whole number of minutes", step)
	case span < step || span%step != 0 || span/step > MaxSteps:
		return invalid("forecast", Ref{Queue: queue}, "the span %s is not 1 to %d steps of %s", span, MaxSteps, step)
	}
	return nil
}

// CheckPause returns an ErrInvalid unless a pause may last for d.
func CheckPause(queue string, d time.Duration) error {
	if d < 0 {
		return invalid("pause", Ref{Queue: queue}, "the duration %s is negative; 0 is for good", d)
	}
	return nil
}

// Check returns an ErrInvalid unless a want asks for something.
func (w *Want) Check() error {
	if w.Max < 1 {
		return invalid("lease", Ref{Queue: w.Queue}, "ask for at least one message")
	}
	return nil
}

// Check returns an ErrInvalid unless a ref names a message.
func (r *Ref) Check(op string) error {
	if r.ID == 0 && r.Key == "" {
		return invalid(op, *r, "neither a key nor an id is given")
	}
	return nil
}

func invalid(op string, ref Ref, hint string, args ...any) error {
	return refusal(op, ref, ErrInvalid, fmt.Sprintf(hint, args...))
}

// Check returns an ErrInvalid unless a settlement says what to do; its token is the
// engine's matter.
func (s *Settlement) Check() error {
	if s.Do < Ack || s.Do > Extend || s.Do == Snooze && s.When == nil {
		return invalid("settle", Ref{}, "settle with ack, retry, snooze (and until when), release, bury or extend")
	}
	return nil
}

// KeptReason is the reason cut to MaxReason bytes, with no half of a character left.
func (s *Settlement) KeptReason() string {
	return KeptReason(s.Reason)
}

// KeptReason is what is kept of a reason: at most MaxReason bytes.
func KeptReason(reason string) string {
	if len(reason) <= MaxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:MaxReason], "")
}

// Clip keeps what people read in an error short, whatever came in: at most 64 bytes of
// it and a sign that there is more.
func Clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
