package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/tarryhq/tarry/internal/duration"
)

// Explain says in words when t fires, and what the changes of the clock in the twelve
// months from a time on do to it.
func (t *Timetable) Explain(from time.Time) []string {
	said := []string{t.describe()}
	if t.spec == nil || t.zone == time.UTC {
		return said
	}
	for p := periodAt(t.zone, from); !p.end.IsZero() && p.end.Before(from.AddDate(1, 0, 0)); {
		p = periodAt(t.zone, p.end)
		change := t.explainChange(p)
		if change != "" && !p.start.Before(t.start) && !p.start.After(t.end) {
			said = append(said, change)
		}
	}
	if len(said) == 1 {
		said = append(said, "no change of the clock in the next 12 months affects it")
	}
	return said
}

func (t *Timetable) describe() string {
	if t.spec == nil {
		return fmt.Sprintf("every %s, counted from %s", duration.Format(t.every), later(time.Unix(0, 0).UTC(), t.start).Format(time.RFC3339))
	}
	parts := t.times()
	days, months := t.days(), values(t.spec.Month, 1, 12)
	switch {
	case days != "":
		parts = append(parts, days)
	case !t.realTime:
		parts = append(parts, "every day")
	}
	if len(months) < 12 {
		parts = append(parts, "in "+and(runs(months, func(m int) string { return time.Month(m).String() })))
	}
	return strings.Join(append(parts, "in "+t.zone.String()), ", ")
}

// times lists few times of the day, and describes many field by field.
func (t *Timetable) times() []string {
	seconds, minutes, hours := values(t.spec.Second, 0, 59), values(t.spec.Minute, 0, 59), values(t.spec.Hour, 0, 23)
	if len(seconds)*len(minutes)*len(hours) <= 6 {
		var clocks []string
		for i := range len(seconds) * len(minutes) * len(hours) {
			h, m, s := i/len(seconds)/len(minutes), i/len(seconds)%len(minutes), i%len(seconds)
			clocks = append(clocks, clock(time.Date(1, 1, 1, hours[h], minutes[m], seconds[s], 0, time.UTC)))
		}
		return []string{"at " + and(clocks)}
	}
	var parts []string
	if len(seconds) > 1 || seconds[0] != 0 {
		parts = append(parts, each("second", "at", seconds, 60))
	}
	if len(minutes) < 60 || parts == nil {
		parts = append(parts, each("minute", "at", minutes, 60))
	}
	if len(hours) < 24 || len(minutes) < 60 && !strings.HasPrefix(parts[len(parts)-1], "every") {
		parts = append(parts, each("hour", "in", hours, 24))
	}
	return parts
}

// each describes the values of a field that has n of them.
func each(unit, in string, of []int, n int) string {
	step := n / len(of)
	regular := step*len(of) == n
	for i, v := range of {
		regular = regular && v == i*step
	}
	switch {
	case regular && step == 1:
		return "every " + unit
	case regular && step < n:
		return fmt.Sprintf("every %d %ss", step, unit)
	case len(of) == 1:
		return fmt.Sprintf("%s %s %d", in, unit, of[0])
	default:
		return fmt.Sprintf("%s %ss %s", in, unit, and(runs(of, strconv.Itoa)))
	}
}

// days is empty when every day matches.
func (t *Timetable) days() string {
	dom, dow := t.daysOfMonth(), t.daysOfWeek()
	switch {
	case dom != "" && dow != "" && t.spec.DowOrDom:
		return "on " + dom + " or on " + dow
	case t.spec.DowOrDom: // one of the two is every day
		return ""
	case dom != "" && dow != "":
		return "on " + dom + " if it is " + dow
	case dom != "":
		return "on " + dom
	case strings.Contains(dow, " to ") || dow == "":
		return dow
	default:
		return "on " + dow
	}
}

func (t *Timetable) daysOfMonth() string {
	numbers := values(t.spec.Dom, 1, 31)
	if len(numbers) == 31 {
		return ""
	}
	days := runs(numbers, func(d int) string { return fmt.Sprintf("day %d", d) })
	for _, c := range t.spec.DomConstraints {
		switch c.Type {
		case cron.DomLast:
			days = append(days, "the last day")
		case cron.DomLastOffset:
			days = append(days, fmt.Sprintf("the day %d before the last", c.N))
		case cron.DomLastWeekday:
			days = append(days, "the last weekday")
		case cron.DomNearestWeekday:
			days = append(days, fmt.Sprintf("the weekday nearest to day %d", c.N))
		}
	}
	return and(days) + " of the month"
}

func (t *Timetable) daysOfWeek() string {
	numbers := values(t.spec.Dow, 0, 6)
	if len(numbers) == 7 {
		return ""
	}
	days := runs(numbers, func(d int) string { return time.Weekday(d).String() })
	for _, c := range t.spec.DowConstraints {
		nth := "last"
		if c.N > 0 {
			nth = [...]string{"first", "second", "third", "fourth", "fifth"}[c.N-1]
		}
		days = append(days, fmt.Sprintf("the %s %s of the month", nth, time.Weekday(c.Weekday)))
	}
	return and(days)
}

// values are those from low to high of which the bit is set.
func values(set uint64, low, high int) []int {
	var of []int
	for v := low; v <= high; v++ {
		if set>>v&1 == 1 {
			of = append(of, v)
		}
	}
	return of
}

// runs names values, three or more in a row by the first and the last.
func runs(of []int, name func(int) string) []string {
	var names []string
	for i := 0; i < len(of); {
		end := i
		for end+1 < len(of) && of[end+1] == of[end]+1 {
			end++
		}
		if end-i < 2 {
			names, i = append(names, name(of[i])), i+1
			continue
		}
		names, i = append(names, name(of[i])+" to "+name(of[end])), end+1
	}
	return names
}

func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func clock(wall time.Time) string {
	if wall.Second() != 0 {
		return wall.Format(time.TimeOnly)
	}
	return wall.Format("15:04")
}

// explainChange says what the change at p's start does, if it skips or repeats wall times
// at which t fires.
func (t *Timetable) explainChange(p period) string {
	low, high := p.start.Add(min(p.before, p.offset)), p.start.Add(max(p.before, p.offset))
	first := t.spec.Next(low.Add(-time.Second))
	if first.IsZero() || !first.Before(high) {
		return ""
	}
	day := first.Format(time.DateOnly)
	near := func(wall time.Time) string {
		if wall.Format(time.DateOnly) == day {
			return clock(wall)
		}
		return wall.Format(time.DateOnly) + " " + clock(wall)
	}
	walls, are, fires := clock(first), "does", "fires"
	if final := t.spec.Prev(high); final.After(first) {
		walls, are, fires = walls+" to "+near(final), "do", "fires once"
	}
	if t.realTime {
		fires = "goes on"
	}
	switch next := t.next(p.start.Add(-time.Second)).Add(p.offset); {
	case p.before < p.offset:
		return fmt.Sprintf("on %s %s %s not exist: it %s at %s", day, walls, are, fires, near(next))
	case t.realTime:
		return fmt.Sprintf("on %s %s comes twice: it fires both times", day, walls)
	default:
		return fmt.Sprintf("on %s %s comes twice: it fires the first time only", day, walls)
	}
}
