package timer

import (
	"math"
	"time"
)

// scale maps instants to whole units since an origin, as uint64 with the
// origin in the middle, so that dues before and after it compare as they are.
// The unit is a microsecond when the tick is made of whole ones (which reaches
// 146,000 years either way), else a nanosecond (146 years). What lies beyond
// is held at the far end.
//
// The wall clock counts: a monotonic reading in a time is ignored.
type scale struct {
	origin time.Time
	unit   int64 // nanoseconds: 1 or 1000
	tick   int64 // units
}

const (
	// middle stands in the middle of its slot at every level, so that dues
	// shortly before it do not lie across the boundary of a coarse one.
	middle = 1<<63 | 0x0820_8208_2082_0820
	reach  = 1 << 62
	never  = math.MaxUint64 // later than any instant
)

func newScale(tick time.Duration, now time.Time) scale {
	if tick <= 0 {
		panic("timer: the tick must be positive")
	}
	s := scale{unit: 1}
	if tick%time.Microsecond == 0 {
		s.unit = 1000
	}
	s.tick = int64(tick) / s.unit
	// On a multiple of the tick, so that whole milliseconds stay whole.
	s.origin = now.Round(0).Truncate(tick)
	return s
}

// ceil is the first unit at or after t.
func (s *scale) ceil(t time.Time) uint64 {
	d := int64(t.Sub(s.origin))
	if d == math.MaxInt64 || d == math.MinInt64 {
		return place(s.far(t, s.unit-1))
	}
	k := d
	if s.unit != 1 {
		k = d / 1000
		if d%1000 > 0 {
			k++
		}
	}
	return place(k)
}

// floor is the last tick at or before t, in units.
func (s *scale) floor(t time.Time) uint64 {
	d := int64(t.Sub(s.origin))
	var k int64
	if d == math.MaxInt64 || d == math.MinInt64 {
		k = s.far(t, 0)
	} else {
		k = floorDiv(d, s.unit)
	}
	if k > -reach {
		k = floorDiv(k, s.tick) * s.tick
	}
	return min(place(k), never-1)
}

// place maps units after the origin, before it when negative, to a due.
func place(k int64) uint64 {
	switch {
	case k > reach:
		return never
	case k < -reach:
		return 0
	}
	return uint64(k) + middle
}

// far is how many units after the origin t, and so many nanoseconds more, is,
// rounded down, for where a time.Duration does not reach.
func (s *scale) far(t time.Time, more int64) int64 {
	perSecond := int64(time.Second) / s.unit
	seconds := t.Unix() - s.origin.Unix()
	switch {
	case seconds > reach/perSecond:
		return math.MaxInt64
	case seconds < -reach/perSecond:
		return math.MinInt64 + 1
	}
	nanos := int64(t.Nanosecond() - s.origin.Nanosecond())
	return seconds*perSecond + floorDiv(nanos+more, s.unit)
}

// time is the instant of a unit.
func (s *scale) time(k uint64) time.Time {
	n := int64(k - middle)
	if n <= math.MaxInt64/s.unit && n >= math.MinInt64/s.unit {
		return s.origin.Add(time.Duration(n * s.unit))
	}
	perSecond := int64(time.Second) / s.unit
	seconds := floorDiv(n, perSecond)
	return time.Unix(s.origin.Unix()+seconds, int64(s.origin.Nanosecond())+(n-seconds*perSecond)*s.unit).In(s.origin.Location())
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
