package engine

import "time"

// Settings are stored with a queue and apply to all its users. Zero values are unset.
// Defaults apply to later pushes only: a message keeps the policy resolved at its push.
// Everything else takes effect at once.
type Settings struct {
	Defaults Terms // for terms that a push leaves unset

	DeadKeep time.Duration // how long a dead message is kept; unset: for ever
	DeadMax  int64         // most dead messages: beyond it the oldest are dropped; unset: any number

	History    time.Duration // how long finished messages are listed; unset: as the store says; Never
	HistoryMax int64         // most finished messages listed: beyond it the oldest are dropped; unset: as the store says

	MaxPending int64   // most live messages: a push beyond it gets ErrLimit; unset: any number
	InFlight   int64   // most leased messages, over all processes; unset: any number
	Rate       float64 // leases a second; unset: any number
	Burst      int64   // most leases at once after a pause; unset: see Bursts
}

// Limits of settings.
const (
	MaxCount = 1_000_000_000_000 // of DeadMax, HistoryMax, MaxPending and InFlight
	MinRate  = 1.0 / (24 * 60 * 60)
	MaxRate  = 1_000_000
	MaxBurst = 1_000_000
	MaxRest  = 10 * 365 * 24 * time.Hour // how long a whole Burst may take to gather at Rate
)

// Bursts returns how many leases Rate allows at once: Burst, else what Rate allows in a
// tenth of a second, and at least 1.
func (s *Settings) Bursts() int64 {
	if s.Burst > 0 {
		return s.Burst
	}
	return max(1, int64(s.Rate/10))
}

// Unset reports whether nothing is set.
func (s *Settings) Unset() bool {
	d := &s.Defaults
	return d.Priority == nil && d.MaxAttempts == 0 && len(d.Backoff) == 0 && d.TTR == 0 && d.ExpireAfter == 0 && d.Remember == 0 && d.Isolate == nil &&
		s.DeadKeep == 0 && s.DeadMax == 0 && s.History == 0 && s.HistoryMax == 0 && s.MaxPending == 0 && s.InFlight == 0 && s.Rate == 0 && s.Burst == 0
}

// Validate returns an ErrInvalid that says what is wrong with the settings of a queue.
func (s *Settings) Validate(queue string) error {
	const op = "configure"
	ref := Ref{Queue: queue}
	for _, count := range []struct {
		name string
		n    int64
	}{{"dead_max", s.DeadMax}, {"max_pending", s.MaxPending}, {"in_flight", s.InFlight}} {
		if count.n < 0 || count.n > MaxCount {
			return Invalid(op, ref, "%s is %d; allowed are 1 to %d, or nothing for no limit", count.name, count.n, int64(MaxCount))
		}
	}
	if err := (History{s.History, s.HistoryMax}).validate(op, ref); err != nil {
		return err
	}
	switch {
	case s.DeadKeep < 0:
		return Invalid(op, ref, "dead_keep %s is negative", s.DeadKeep)
	case s.Rate != 0 && !(s.Rate >= MinRate && s.Rate <= MaxRate): // nor is NaN allowed
		return Invalid(op, ref, "the rate is %v leases a second; allowed are one a day to %d a second, or nothing for no limit", s.Rate, MaxRate)
	case s.Burst < 0 || s.Burst > MaxBurst:
		return Invalid(op, ref, "the burst is %d; allowed are 1 to %d", s.Burst, MaxBurst)
	case s.Burst != 0 && s.Rate == 0:
		return Invalid(op, ref, "a burst means nothing without a rate")
	case float64(s.Burst) > s.Rate*MaxRest.Seconds():
		return Invalid(op, ref, "at the rate of %v leases a second it takes more than ten years to gather the burst of %d", s.Rate, s.Burst)
	}
	return s.Defaults.validate(op, ref)
}
