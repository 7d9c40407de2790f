package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	cron "github.com/netresearch/go-cron"

	"github.com/tarryhq/tarry/internal/duration"
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

const (
	maxSpec  = 200
	maxEvery = 10 * 366 * 24 * time.Hour

	// searchYears is more than there ever is between two instants: the fifth Monday of
	// a February comes after 40 years if one of them is 2100.
	searchYears = 50
)

var parser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.Extended).WithMaxSearchYears(searchYears)

// item is an element of a field's list. The parser alone would take some that mean nothing.
var item = regexp.MustCompile(`^((\*|\?|[a-z0-9]+(-[a-z0-9]+)?)(/[0-9]+)?|l(-[0-9]+|w)?|[0-9]+w|[a-z0-9]+#([0-9]|l))$`)

var fields = [...]struct{ name, takes string }{
	{"second", "0 to 59, as in 0, 15,45 or */10"},
	{"minute", "0 to 59, as in 0, 15,45 or */10"},
	{"hour", "0 to 23, as in 2, 9-17 or */4"},
	{"day of the month", "1 to 31, as in 1,15 or */2, or L, L-2, LW, 15W"},
	{"month", "1 to 12 or JAN to DEC, as in 1,7 or MAR-OCT"},
	{"day of the week", "0 to 7 or SUN to SAT, as in MON-FRI, or FRI#3, FRI#L"},
}

// parse sets what t takes from an expression.
func (t *Timetable) parse(spec string) error {
	switch {
	case len(spec) > maxSpec:
		return fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(spec), maxSpec)
	case strings.ContainsFunc(spec, unicode.IsControl):
		return fmt.Errorf("the expression %q has control characters: fields are separated by spaces", spec)
	}
	text := strings.ToLower(strings.TrimSpace(spec))
	if d, ok := strings.CutPrefix(text, "@every "); ok {
		return t.parseEvery(strings.TrimSpace(d))
	}
	if strings.HasPrefix(text, "@") {
		parsed, err := parser.Parse(text)
		if err != nil {
			return fmt.Errorf("%q is unknown: there are @yearly, @monthly, @weekly, @daily, @hourly and @every, as in \"@every 90s\"", spec)
		}
		t.setSpec(parsed.(*cron.SpecSchedule))
		return nil
	}
	return t.parseFields(spec, strings.Fields(text))
}

func (t *Timetable) parseEvery(text string) error {
	d, err := duration.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("@every: %q is %w, as in \"@every 90s\" or \"@every 1h30m\"", text, err)
	case d < time.Second || d%time.Second != 0:
		return fmt.Errorf("@every %s: the interval is whole seconds, at least 1s, as in \"@every 90s\"", text)
	case d > maxEvery:
		return fmt.Errorf("@every %s: the interval is at most ten years, as in \"@every 90d\"", text)
	}
	t.every = d
	return nil
}

func (t *Timetable) parseFields(spec string, texts []string) error {
	switch n := len(texts); {
	case n > 0 && strings.Contains(texts[0], "="):
		return fmt.Errorf("%q: the zone is not part of the expression, it is given beside it", spec)
	case n == 7:
		return fmt.Errorf("%q has seven fields: there is none for years, give a start and an end", spec)
	case n != 5 && n != 6:
		return fmt.Errorf("%q has %d fields: it takes minute, hour, day of the month, month and day of the week, as in \"30 2 * * MON-FRI\", or six with seconds first", spec, n)
	case n == 5:
		texts = append([]string{"0"}, texts...)
	}
	parsed, err := parser.Parse(strings.Join(texts, " "))
	for i, text := range texts {
		if !wellFormed(text) || err != nil && !parses(i, text) {
			return fmt.Errorf("%s %q: it takes %s", fields[i].name, text, fields[i].takes)
		}
	}
	if err != nil {
		return err
	}
	s := parsed.(*cron.SpecSchedule)
	// As crontab(5) has it: fields with * do not restrict the days, of two that do either matches.
	s.DowOrDom = !strings.ContainsAny(texts[3]+texts[5], "*?")
	t.setSpec(s)
	return nil
}

func wellFormed(text string) bool {
	for e := range strings.SplitSeq(text, ",") {
		if !item.MatchString(e) {
			return false
		}
	}
	return true
}

// parses reports whether field i does when all others are open.
func parses(i int, text string) bool {
	alone := strings.Split("* * * * * *", " ")
	alone[i] = text
	_, err := parser.Parse(strings.Join(alone, " "))
	return err == nil
}

func (t *Timetable) setSpec(s *cron.SpecSchedule) {
	const day = 1<<24 - 1
	t.spec, t.realTime = s, s.Hour&day == day
}
