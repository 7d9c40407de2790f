package schedule

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
)

// zones are those that were loaded, by name: their files are read once.
var zones sync.Map

// loadZone refuses what is another zone on another machine.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if strings.EqualFold(name, "local") || strings.EqualFold(name, "localtime") {
		return nil, fmt.Errorf("the zone %s is another on each machine: name it, as in Europe/Berlin", name)
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || path.Clean(name) != name { // a file has many paths, a zone one name
		return nil, fmt.Errorf("the zone %.70q is unknown: zones are named as in Europe/Berlin or UTC", name)
	}
	zones.Store(name, zone)
	return zone, nil
}

// A period is a time in which a zone has one offset: instant plus offset is wall time.
// Where it begins the clock changes by the difference of the offsets: forwards it skips
// wall times, backwards it shows some again.
type period struct {
	start, end     time.Time // end is not in it; zero if it is unbounded
	offset, before time.Duration
}

// farthest is more than any wall time is from UTC, and any two are from each other.
const farthest = 48 * time.Hour

func periodAt(zone *time.Location, at time.Time) period {
	start, end := boundsAt(zone, at)
	if start.IsZero() {
		return period{end: end, offset: offsetAt(zone, at), before: offsetAt(zone, at)}
	}
	// A start that Go derives from a zone's rule may precede a single change after which
	// the rule began: follow the changes from there.
	for {
		_, change := boundsAt(zone, start)
		if change.IsZero() || change.After(at) {
			break
		}
		start = change
	}
	return period{start, end, offsetAt(zone, at), offsetAt(zone, start.Add(-time.Second))}
}

// boundsAt is Time.ZoneBounds, of which the end is after at. Go takes each year of a zone's
// rule for one of 365 days.
func boundsAt(zone *time.Location, at time.Time) (start, end time.Time) {
	start, end = at.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		end = time.Date(at.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return start.UTC(), end.UTC()
}

func offsetAt(zone *time.Location, t time.Time) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// opens is the first wall time that fires in p. An expression with certain hours also fires
// at p's start for those that were skipped, and not again for those that p repeats: either
// way it goes on where the wall times of the period before ended.
func (t *Timetable) opens(p period) time.Time {
	if t.realTime {
		return p.start.Add(p.offset)
	}
	return p.start.Add(p.before)
}

// next is the first instant after a time, whatever the bounds.
func (t *Timetable) next(after time.Time) time.Time {
	for p := periodAt(t.zone, after); ; {
		wall := t.opens(p).Add(-time.Second)
		if !after.Before(p.start) {
			wall = later(wall, after.UTC().Add(p.offset))
		}
		wall = t.spec.Next(wall)
		if wall.IsZero() {
			return wall
		}
		at := later(p.start, wall.Add(-p.offset))
		if p.end.IsZero() || at.Before(p.end) {
			return at
		}
		after := p.end
		if !t.realTime { // else the next period may show again what fires
			after = later(after, at.Add(-farthest))
		}
		p = periodAt(t.zone, after)
	}
}

// newest is the newest instant that is not after a time, whatever the bounds, or zero.
func (t *Timetable) newest(until time.Time) time.Time {
	for {
		p := periodAt(t.zone, until)
		wall := t.spec.Prev(until.Add(p.offset + time.Second))
		if wall.IsZero() {
			return wall
		}
		at := wall.Add(-p.offset)
		if !wall.Before(t.opens(p)) {
			return later(p.start, at)
		}
		until = p.start.Add(-time.Second)
	}
}
