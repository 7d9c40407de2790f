package timer

import (
	"math"
	"time"
)

// scale maps instants to whole units since an origin. A due time is a uint64 with
// the origin in the middle, so that times before and after it can be compared as
// they are. The unit is a microsecond if the tick is a whole number of these
// (which reaches 146,000 years either way), else a nanosecond (146 years). A due
// time beyond this range never comes; one before it is the first of the range.
//
// Only the wall clock counts: a monotonic reading in a time is ignored.
type scale struct {
	origin    time.Time
	second    int64 // Unix time of the origin
	part      int64 // units of the origin within its second
	unit      int64 // in nanoseconds: 1 or 1000
	perSecond int64 // units in a second
	tick      int64 // units in a tick
	span      int64 // seconds within reach, either way
}

const (
	// middle is in the middle of its slot at every level, so that due times
	// shortly before it do not lie across the boundary of a coarse slot.
	middle = 1<<63 | 0x0820_8208_2082_0820
	reach  = 1 << 62
	away   = math.MaxUint64         // the due time of entries that a Wheel has lent
	never  = away - 1               // later than any instant
	always = middle - reach - 1<<31 // earlier than any within reach, and near enough that int64 holds its distance from the middle
)

func newScale(tick time.Duration, now time.Time) scale {
	if tick <= 0 {
		panic("timer: the tick must be positive")
	}
	s := scale{unit: 1}
	if tick%time.Microsecond == 0 {
		s.unit = 1000
	}
	s.perSecond = int64(time.Second) / s.unit
	s.tick = int64(tick) / s.unit
	s.span = reach / s.perSecond
	// On a multiple of the tick, so that whole milliseconds stay whole.
	s.origin = now.Round(0).Truncate(tick)
	s.second, s.part = s.origin.Unix(), int64(s.origin.Nanosecond())/s.unit
	return s
}

// ceil is the first unit at or after t.
func (s *scale) ceil(t time.Time) uint64 {
	n := uint32(t.Nanosecond())
	if s.unit != 1 {
		n = (n + 999) / 1000
	}
	return s.place(t.Unix(), int64(n))
}

// floor is the last tick at or before t, in units.
func (s *scale) floor(t time.Time) uint64 {
	at := s.place(t.Unix(), int64(t.Nanosecond())/s.unit)
	if at == always {
		return always - 1 // an entry at always may be due after t
	}
	k := int64(at - middle)
	if k > -reach && k < reach {
		k = floorDiv(k, s.tick) * s.tick
	}
	return min(uint64(k)+middle, never-1)
}

// place maps a second of the clock, and units after it, to a due time.
func (s *scale) place(second, units int64) uint64 {
	// time.Time.Sub would cost twice as much, and reach only 292 years.
	switch {
	case second > s.second+s.span:
		return never
	case second < s.second-s.span:
		return always
	}
	return uint64((second-s.second)*s.perSecond+units-s.part) + middle
}

// time is the instant of a unit.
func (s *scale) time(k uint64) time.Time {
	n := int64(k - middle)
	if n <= math.MaxInt64/s.unit && n >= math.MinInt64/s.unit {
		return s.origin.Add(time.Duration(n * s.unit))
	}
	seconds := floorDiv(n, s.perSecond)
	return time.Unix(s.second+seconds, (s.part+n-seconds*s.perSecond)*s.unit).In(s.origin.Location())
}

// up rounds a unit up to a tick.
func (s *scale) up(k uint64) uint64 {
	n := int64(k - middle)
	if n > math.MaxInt64-s.tick {
		return never
	}
	return uint64(-floorDiv(-n, s.tick)*s.tick) + middle
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
