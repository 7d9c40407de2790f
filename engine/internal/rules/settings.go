package rules

import (
	"math"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Settings are the settings of a queue, with the state that its rate needs. A nil Settings was
// never configured and limits nothing.
type Settings struct {
	engine.Settings
	Revision uint64
	bucket   Bucket
}

// Replace replaces all settings.
func (s *Settings) Replace(by engine.Settings) {
	s.Settings = by
	s.Revision++
	if by.Rate == 0 {
		s.bucket = Bucket{} // full when a rate is set again
	}
}

// NoRevision is the revision of a queue that was never configured.
const NoRevision = "0"

// Version returns the revision as callers see it.
func (s *Settings) Version() string {
	if s == nil {
		return NoRevision
	}
	return strconv.FormatUint(s.Revision, 10)
}

// Copy returns the settings as callers see them.
func (s *Settings) Copy() (all engine.Settings) {
	if s != nil {
		all = s.Settings
		all.Defaults = all.Defaults.Clone()
	}
	return all
}

// Terms returns the defaults for pushes; nil: none.
func (s *Settings) Terms() *engine.Terms {
	if s == nil {
		return nil
	}
	return &s.Defaults
}

func (s *Settings) rate() Rate { return Rate{PerSecond: s.Rate, Burst: s.Bursts()} }

// Full reports whether so many leases reach InFlight.
func (s *Settings) Full(leased int64) bool {
	return s != nil && s.InFlight > 0 && leased >= s.InFlight
}

// Grantable returns how many of n messages may be leased now, beside those leased already.
func (s *Settings) Grantable(now time.Time, n int, leased int64) int {
	if s == nil {
		return n
	}
	if s.InFlight > 0 {
		n = int(min(int64(n), max(0, s.InFlight-leased)))
	}
	if s.Rate > 0 {
		n = min(n, s.bucket.Allows(now, s.rate()))
	}
	return n
}

// Granted counts n leases that Grantable has allowed.
func (s *Settings) Granted(n int) {
	if s != nil && s.Rate > 0 {
		s.bucket.Take(n, s.rate())
	}
}

// NextAllowed returns when the rate allows leases, in Unix milliseconds; at or before now: at
// once.
func (s *Settings) NextAllowed(now time.Time) int64 {
	if s == nil || s.Rate == 0 {
		return now.UnixMilli()
	}
	s.bucket.Allows(now, s.rate()) // brings it to now
	return s.bucket.Next(s.rate()).Add(time.Millisecond - 1).UnixMilli()
}

// DeadFrom returns the earliest death of the messages that stay listed as dead.
func (s *Settings) DeadFrom(ms int64) int64 {
	if s == nil || s.DeadKeep == 0 {
		return math.MinInt64
	}
	return ms - Millis(s.DeadKeep)
}

// RefuseClaim returns the error of a claim that the settings hold back, or nil.
func (s *Settings) RefuseClaim(ref engine.Ref, now time.Time, leased int64) error {
	switch {
	case s.Grantable(now, 1, leased) > 0:
		return nil
	case s.Full(leased):
		return engine.RefuseClaim(ref, time.Time{})
	}
	return engine.RefuseClaim(ref, Instant(s.NextAllowed(now)))
}

// RefusePending returns the error of a new message beside so many live ones, or nil.
func (s *Settings) RefusePending(ref engine.Ref, live int64) error {
	if s == nil || s.MaxPending == 0 || live < s.MaxPending {
		return nil
	}
	return engine.RefusePending(ref, s.MaxPending)
}
