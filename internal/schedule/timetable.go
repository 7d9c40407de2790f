package schedule

import (
	"errors"
	"fmt"
	"slices"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Timetable is when a schedule fires: the instants of an expression in a zone. All are
// whole seconds, in UTC.
//
// An expression describes wall times: what a clock of the zone shows. The library behind it
// knows only clocks that never change; spec takes and returns wall times as if they were
// UTC, and zone.go maps them to instants.
type Timetable struct {
	spec       *cron.SpecSchedule // nil: every is set
	every      time.Duration
	zone       *time.Location
	realTime   bool      // every hour matches: a change of the clock neither adds nor moves anything
	start, end time.Time // both may fire; start is zero if there is none
}

// last is the last instant there is: RFC 3339 ends there.
var last = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// Parse reads an expression of five fields, of six with seconds first, @daily and its
// kind, or "@every 90s". The zone "" is UTC. Zero start and end do not bound it.
func Parse(spec, zone string, start, end time.Time) (*Timetable, error) {
	t := &Timetable{end: last}
	if !start.IsZero() {
		t.start = start.UTC().Add(time.Second - 1).Truncate(time.Second)
	}
	if !end.IsZero() {
		t.end = earlier(last, end.UTC().Truncate(time.Second))
	}
	var err error
	if t.zone, err = loadZone(zone); err != nil {
		return nil, err
	}
	if err := t.parse(spec); err != nil {
		return nil, err
	}
	switch {
	case t.spec != nil && t.spec.Next(time.Unix(0, 0).UTC()).IsZero():
		return nil, fmt.Errorf("%q never fires: no month that it names has such a day", spec)
	case !t.start.IsZero() && t.end.Before(t.start):
		return nil, errors.New("the end is before the start")
	case !t.start.IsZero() && t.Next(t.start.Add(-time.Second)).IsZero():
		return nil, fmt.Errorf("%q never fires between its start and its end", spec)
	}
	return t, nil
}

// Next is the first instant after a time, or zero if there is none.
func (t *Timetable) Next(after time.Time) time.Time {
	if before := t.start.Add(-time.Second); !t.start.IsZero() {
		after = later(before, after)
	}
	if !after.Before(t.end) {
		return time.Time{}
	}
	var next time.Time
	if t.spec == nil {
		next = t.beat(after).Add(t.every)
	} else {
		next = t.next(after)
	}
	if next.After(t.end) {
		return time.Time{}
	}
	return next
}

// Newest is the newest n instants after one time and not after another, oldest first.
func (t *Timetable) Newest(after, until time.Time, n int) []time.Time {
	if before := t.start.Add(-time.Second); !t.start.IsZero() {
		after = later(before, after)
	}
	var newest []time.Time
	for until = earlier(t.end, until.UTC()); len(newest) < n; until = until.Add(-time.Second) {
		if t.spec == nil {
			until = t.beat(until)
		} else {
			until = t.newest(until)
		}
		if !until.After(after) { // also when zero
			break
		}
		newest = append(newest, until)
	}
	slices.Reverse(newest)
	return newest
}

// beat is the newest instant of @every that is not after a time, whatever the bounds.
func (t *Timetable) beat(until time.Time) time.Time {
	origin := int64(0) // 1970: a schedule that is set anew keeps its instants
	if !t.start.IsZero() {
		origin = t.start.Unix()
	}
	every := int64(t.every / time.Second)
	past := (until.Unix() - origin) % every
	if past < 0 {
		past += every
	}
	return time.Unix(until.Unix()-past, 0).UTC()
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
