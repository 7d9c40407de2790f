package engine

import (
	"fmt"
	"strings"
	"time"
)

// Each engine makes the checks below: they cost next to nothing, and engines are also used
// without a client. limits.go has the checks that the client makes.

// Bounds of queries, the same for every engine.
const (
	MaxPage  = 1000   // messages on a page of a list
	MaxSteps = 10_000 // buckets of a forecast
)

// Check returns an ErrInvalid that says what is wrong with a query, or nil. It does not
// check After, which only the engine can read.
func (q *ListQuery) Check() error {
	if q.State == Gone || q.State > Finished {
		return Invalid("list", Ref{Queue: q.Queue}, "the state to list is scheduled, ready, leased, dead or finished")
	}
	return CheckLimit("list", q.Queue, q.Limit)
}

// CheckLimit returns an ErrInvalid unless a page may have that length.
func CheckLimit(op, queue string, limit int) error {
	if limit < 1 || limit > MaxPage {
		return Invalid(op, Ref{Queue: queue}, "the limit is %d; allowed are 1 to %d", limit, MaxPage)
	}
	return nil
}

// CheckForecast returns an ErrInvalid unless step and span are as Forecaster requires.
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

// Check returns an ErrInvalid unless a want asks for a message.
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

// Invalid returns an ErrInvalid with a hint that says what is wrong.
func Invalid(op string, ref Ref, hint string, args ...any) error {
	ref.Key = Clip(ref.Key)
	return refusal(op, ref, ErrInvalid, fmt.Sprintf(hint, args...))
}

// Check returns an ErrInvalid unless a settlement has a valid action. The engine checks the
// token.
func (s *Settlement) Check() error {
	switch {
	case s.Do < Ack || s.Do > Extend:
		return Invalid("settle", Ref{}, "unknown action %d: settle with ack, retry, snooze, release, bury or extend", s.Do)
	case s.Do == Snooze && s.When == nil:
		return Invalid("settle", Ref{}, "a snooze needs a delay")
	}
	return nil
}

// KeptReason returns the reason cut to MaxReason bytes, at a character boundary.
func (s *Settlement) KeptReason() string {
	return KeptReason(s.Reason)
}

// KeptReason returns what is stored of a reason: at most MaxReason bytes.
func KeptReason(reason string) string {
	if len(reason) <= MaxReason {
		return reason
	}
	return strings.Clone(strings.ToValidUTF8(reason[:MaxReason], "")) // of the rest nothing is retained
}

// Clip shortens a value for an error message to at most 64 bytes and an ellipsis.
func Clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
