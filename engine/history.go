package engine

import "time"

// History is how long finished messages are listed, and how many of a queue. The zero
// History lists none. A listed message holds no key: that is Policy.Remember.
type History struct {
	Keep time.Duration // how long after its end; 0: none are listed
	Max  int64         // most of a queue: beyond it the oldest are dropped; 0: DefaultHistoryMax
}

// DefaultHistoryMax is how many finished messages of a queue are listed unless Max says
// otherwise.
const DefaultHistoryMax = 100_000

// Of returns the history of a queue with these settings, which may be nil, in a store with
// the history h.
func (h History) Of(s *Settings) History {
	if s != nil && s.History != 0 {
		h.Keep = max(0, s.History)
	}
	if s != nil && s.HistoryMax != 0 {
		h.Max = s.HistoryMax
	}
	if h.Max == 0 {
		h.Max = DefaultHistoryMax
	}
	return h
}

// validate returns an ErrInvalid that says what is wrong with a history.
func (h History) validate(op string, ref Ref) error {
	switch {
	case h.Keep < 0 && h.Keep != Never:
		return Invalid(op, ref, "history %s is negative", h.Keep)
	case h.Max < 0 || h.Max > MaxCount:
		return Invalid(op, ref, "history_max is %d; allowed are 1 to %d, or nothing for %d", h.Max, int64(MaxCount), DefaultHistoryMax)
	}
	return nil
}

// Validate returns an ErrInvalid that says what is wrong with the history of a store.
func (h History) Validate() error { return h.validate("open", Ref{}) }
