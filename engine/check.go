package engine

import (
	"fmt"
	"strings"
	"time"
)

// What follows is checked below the seam, by each engine: it costs next to nothing, and
// engines are also used without what is above them. limits.go has the checks of all else.

// The bounds of questions, the same for every engine.
const (
	MaxPage  = 1000   // messages on a page of a list
	MaxSteps = 10_000 // buckets of a forecast
)

// Check returns an ErrInvalid that says what is wrong with a query but for After,
// which only its engine can read; nil: nothing.
func (q *ListQuery) Check() error {
	if !q.State.Live() && q.State != Dead {
		return Invalid("list", Ref{Queue: q.Queue}, "the state to list is scheduled, ready, leased or dead")
	}
	return CheckLimit("list", q.Queue, q.Limit)
}

// CheckLimit returns an ErrInvalid unless a page of so many is allowed.
func CheckLimit(op, queue string, limit int) error {
	if limit < 1 || limit > MaxPage {
		return Invalid(op, Ref{Queue: queue}, "the limit is %d; allowed are 1 to %d", limit, MaxPage)
	}
	return nil
}

// CheckForecast returns an ErrInvalid unless step and span are as Forecaster asks.
func CheckForecast(queue string, step, span time.Duration) error {
	switch {
	case step < time.Minute || step%time.Minute != 0:
		return Invalid("forecast", Ref{Queue: queue}, "the step %s is not a whole number of minutes", step)
	case span < step || span%step != 0 || span/step > MaxSteps:
		return Invalid("forecast", Ref{Queue: queue}, "the span %s is not 1 to %d steps of %s", span, MaxSteps, step)
	}
	return nil
}

// CheckPause returns an ErrInvalid unless a pause may last for d.
func CheckPause(queue string, d time.Duration) error {
	if d < 0 {
		return Invalid("pause", Ref{Queue: queue}, "the duration %s is negative; 0 is for good", d)
	}
	return nil
}

// Check returns an ErrInvalid unless a want asks for something.
func (w *Want) Check() error {
	if w.Max < 1 {
		return Invalid("lease", Ref{Queue: w.Queue}, "ask for at least one message")
	}
	return nil
}

// Check returns an ErrInvalid unless a ref names a message.
func (r *Ref) Check(op string) error {
	if r.ID == 0 && r.Key == "" {
		return Invalid(op, *r, "neither a key nor an id is given")
	}
	return nil
}

// Invalid returns an ErrInvalid whose hint says what is wrong.
func Invalid(op string, ref Ref, hint string, args ...any) error {
	ref.Key = Clip(ref.Key)
	return refusal(op, ref, ErrInvalid, fmt.Sprintf(hint, args...))
}

// Check returns an ErrInvalid unless a settlement says what to do; its token is the
// engine's matter.
func (s *Settlement) Check() error {
	switch {
	case s.Do < Ack || s.Do > Extend:
		return Invalid("settle", Ref{}, "unknown action %d: settle with ack, retry, snooze, release, bury or extend", s.Do)
	case s.Do == Snooze && s.When == nil:
		return Invalid("settle", Ref{}, "a snooze needs a delay")
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
