package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An expression made at random, beside what it means in the plainest form: which values
// each field allows, and which days.
type expression struct {
	text                 string
	second, minute, hour []bool
	month                []bool
	dom, dow             func(day time.Time) bool
	domWild, dowWild     bool
	everyHour            bool
}

func (e *expression) day(d time.Time) bool {
	switch {
	case !e.month[d.Month()]:
		return false
	case e.domWild || e.dowWild:
		return e.dom(d) && e.dow(d)
	default:
		return e.dom(d) || e.dow(d)
	}
}

func (e *expression) time(t time.Time) bool {
	return e.second[t.Second()] && e.minute[t.Minute()] && e.hour[t.Hour()]
}

// someValues makes a field of numbers, names, ranges, steps and lists.
func someValues(r *rand.Rand, low, high int, names []string) (string, []bool) {
	allowed := make([]bool, high+1)
	name := func(v int) string {
		if names != nil && r.IntN(2) == 0 {
			return names[v%len(names)]
		}
		return strconv.Itoa(v)
	}
	var items []string
	for range 1 + r.IntN(3) {
		from, to, step := low+r.IntN(high-low+1), 0, 1
		text := name(from)
		switch to = from; r.IntN(4) {
		case 0:
			to = from + r.IntN(high-from+1)
			text = fmt.Sprintf("%d-%d", from, to)
		case 1:
			if from, to = low, high; r.IntN(2) == 0 {
				step = 2 + r.IntN((high-low)/2)
				text = fmt.Sprintf("*/%d", step)
			} else {
				step = 1 + r.IntN((high-low)/2)
				text = fmt.Sprintf("%d-%d/%d", low, high, step)
			}
		}
		items = append(items, text)
		for v := from; v <= to; v += step {
			allowed[v] = true
		}
	}
	return strings.Join(items, ","), allowed
}

func open(high int) []bool { return slices.Repeat([]bool{true}, high+1) }

func someExpression(r *rand.Rand, seconds bool) *expression {
	e := &expression{second: make([]bool, 60)}
	var second, minute, hour, dom, month, dow string
	if second, e.second[0] = "0", true; seconds {
		second, e.second = someValues(r, 0, 59, nil)
	}
	minute, e.minute = someValues(r, 0, 59, nil)
	if hour, e.hour = "*", open(23); r.IntN(3) > 0 {
		hour, e.hour = someValues(r, 0, 23, nil)
	}
	e.everyHour = !slices.Contains(e.hour, false)
	if month, e.month = "*", open(12); r.IntN(3) == 0 {
		month, e.month = someValues(r, 1, 12, []string{"DEC", "Jan", "feb", "MAR", "apr", "May", "JUN", "jul", "Aug", "SEP", "oct", "Nov"})
	}
	dom, e.dom = someDom(r)
	dow, e.dow = someDow(r)
	e.domWild, e.dowWild = strings.ContainsAny(dom, "*?"), strings.ContainsAny(dow, "*?")
	e.text = strings.Join([]string{minute, hour, dom, month, dow}, " ")
	if seconds {
		e.text = second + " " + e.text
	}
	return e
}

func someDom(r *rand.Rand) (string, func(time.Time) bool) {
	lastDay := func(d time.Time) time.Time { return time.Date(d.Year(), d.Month()+1, 0, 0, 0, 0, 0, time.UTC) }
	weekday := func(d time.Time) bool { return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday }
	switch r.IntN(10) {
	case 0:
		return "L", func(d time.Time) bool { return d.Equal(lastDay(d)) }
	case 1:
		n := 1 + r.IntN(28)
		return fmt.Sprintf("L-%d", n), func(d time.Time) bool { return d.Equal(lastDay(d).AddDate(0, 0, -n)) }
	case 2:
		return "LW", func(d time.Time) bool {
			for l := lastDay(d); ; l = l.AddDate(0, 0, -1) {
				if weekday(l) {
					return d.Equal(l)
				}
			}
		}
	case 3:
		n := 1 + r.IntN(31)
		return fmt.Sprintf("%dW", n), func(d time.Time) bool {
			if n > lastDay(d).Day() {
				return false
			}
			for _, off := range []int{0, -1, 1, -2, 2} { // the nearest of the same month
				near := time.Date(d.Year(), d.Month(), n+off, 0, 0, 0, 0, time.UTC)
				if near.Month() == d.Month() && weekday(near) {
					return d.Equal(near)
				}
			}
			return false
		}
	case 4, 5, 6:
		text, allowed := someValues(r, 1, 31, nil)
		return text, func(d time.Time) bool { return allowed[d.Day()] }
	case 7:
		return "?", func(time.Time) bool { return true }
	}
	return "*", func(time.Time) bool { return true }
}

func someDow(r *rand.Rand) (string, func(time.Time) bool) {
	names := []string{"SUN", "mon", "TUE", "Wed", "THU", "fri", "SAT"}
	wanted := r.IntN(7)
	switch r.IntN(8) {
	case 0:
		n := 1 + r.IntN(5)
		return fmt.Sprintf("%s#%d", names[wanted], n), func(d time.Time) bool {
			count := 0
			for c := d; c.Month() == d.Month(); c = c.AddDate(0, 0, -7) {
				count++
			}
			return int(d.Weekday()) == wanted && count == n
		}
	case 1:
		return fmt.Sprintf("%d#L", wanted), func(d time.Time) bool {
			return int(d.Weekday()) == wanted && d.AddDate(0, 0, 7).Month() != d.Month()
		}
	case 2, 3:
		text, allowed := someValues(r, 0, 7, names)
		return text, func(d time.Time) bool {
			return allowed[d.Weekday()] || d.Weekday() == time.Sunday && allowed[7]
		}
	}
	return "*", func(time.Time) bool { return true }
}

// A walk goes step by step through a span of time and looks at the clock on the wall.
type walk struct {
	zone     *time.Location
	from, to time.Time
	step     time.Duration
	walls    []time.Time // from runUp before from on
}

// runUp is as long as a walk must have looked to know what is shown again.
const runUp = 3 * time.Hour

func newWalk(zone *time.Location, from, to time.Time, step time.Duration) *walk {
	w := &walk{zone: zone, from: from, to: to, step: step}
	for at := from.Add(-runUp); at.Before(to); at = at.Add(step) {
		l := at.In(zone)
		w.walls = append(w.walls, time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC))
	}
	return w
}

// instants are those of the span at which an expression fires.
func (w *walk) instants(e *expression) []time.Time {
	days := make(map[time.Time]bool)
	matches := func(wall time.Time) bool {
		if !e.time(wall) {
			return false
		}
		day := wall.Truncate(24 * time.Hour)
		match, known := days[day]
		if !known {
			match = e.day(day)
			days[day] = match
		}
		return match
	}
	var fired []time.Time
	shown := w.walls[0] // the farthest that the clock has shown
	for i, wall := range w.walls {
		fires := matches(wall)
		if !e.everyHour {
			fires = fires && wall.After(shown)
			for skipped := shown.Add(w.step); skipped.Before(wall); skipped = skipped.Add(w.step) {
				fires = fires || matches(skipped)
			}
		}
		if at := w.from.Add(time.Duration(i)*w.step - runUp); fires && !at.Before(w.from) {
			fired = append(fired, at)
		}
		shown = later(shown, wall)
	}
	return fired
}

var zoneYears = []struct {
	zone string
	year int
	why  string
}{
	{"UTC", 2028, "no change; a leap year"},
	{"Asia/Kolkata", 2027, "no change, half an hour"},
	{"Europe/Berlin", 2027, "one hour at night"},
	{"America/New_York", 2028, "a leap year"},
	{"Australia/Lord_Howe", 2027, "half an hour"},
	{"Pacific/Chatham", 2027, "offsets of three quarters, the southern half"},
	{"Pacific/Apia", 2011, "a day skipped"},
	{"Pacific/Kwajalein", 1993, "a day skipped in summer"},
	{"America/Sao_Paulo", 2018, "no midnight"},
	{"Asia/Beirut", 2027, "no midnight, and two of them"},
	{"America/Havana", 2027, "no midnight, a repeated hour before 01:00"},
	{"Europe/Dublin", 2027, "negative daylight saving time"},
	{"Africa/Casablanca", 2027, "negative in Ramadan"},
	{"Antarctica/Troll", 2027, "two hours"},
	{"America/Caracas", 2016, "half an hour, once"},
	{"Asia/Pyongyang", 2015, "half an hour back, for good"},
	{"Africa/Juba", 2021, "an hour back at midnight"},
	{"America/Nuuk", 2023, "standard time becomes another"},
}

func TestAYearAsTheClockOnTheWallShowsIt(t *testing.T) {
	eachZone(t, func(t *testing.T, r *rand.Rand, zone *time.Location, year int) {
		from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		w := newWalk(zone, from, from.AddDate(1, 0, 0), time.Minute)
		for range many() {
			w.compare(t, r, someExpression(r, false))
		}
	})
}

func TestChangesOfTheClockSecondBySecond(t *testing.T) {
	eachZone(t, func(t *testing.T, r *rand.Rand, zone *time.Location, year int) {
		for _, change := range changesOf(zone, year) {
			w := newWalk(zone, change.Add(-4*time.Hour), change.Add(4*time.Hour), time.Second)
			for range many() {
				w.compare(t, r, someExpression(r, true))
			}
		}
	})
}

// many expressions are tried each time.
func many() int {
	if testing.Short() {
		return 4
	}
	return 20
}

// What fires once a year, near a change of the clock, is found from far away as from nearby.
func TestChangesOfTheClockFromFarAway(t *testing.T) {
	eachZone(t, func(t *testing.T, _ *rand.Rand, zone *time.Location, year int) {
		for _, change := range changesOf(zone, year) {
			wall := newWalk(zone, change, change.Add(time.Second), time.Second).walls[0]
			for off := -27 * time.Hour; off <= 27*time.Hour; off += 15 * time.Minute {
				table := mustParse(t, wall.Add(off).Format("4 15 2 1 ?"), "", time.Time{}, time.Time{})
				table.zone = zone
				next := table.Next(change.AddDate(0, 0, -3))
				if far := table.Next(next.AddDate(0, -11, 0)); !far.Equal(next) {
					t.Fatalf("%s: %s from far away, %s from nearby", wall.Add(off), far, next)
				}
				if newest := table.Newest(time.Time{}, next.AddDate(0, 11, 0), 1); len(newest) != 1 || !newest[0].Equal(next) {
					t.Fatalf("%s: %s from far away, %s from nearby", wall.Add(off), newest, next)
				}
			}
		}
	})
}

func eachZone(t *testing.T, test func(*testing.T, *rand.Rand, *time.Location, int)) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, c := range zoneYears {
		t.Run(strings.ReplaceAll(c.zone, "/", "_"), func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			test(t, rand.New(rand.NewPCG(seed, 0)), zone, c.year)
		})
	}
}

// changesOf finds the changes of a year's clock minute by minute.
func changesOf(zone *time.Location, year int) []time.Time {
	var changes []time.Time
	at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, before := at.In(zone).Zone(); at.Year() == year; at = at.Add(time.Minute) {
		if _, offset := at.In(zone).Zone(); offset != before {
			changes, before = append(changes, at), offset
		}
	}
	return changes
}

// compare holds Next and Newest against the walk.
func (w *walk) compare(t *testing.T, r *rand.Rand, e *expression) {
	t.Helper()
	table, err := Parse(e.text, "", time.Time{}, time.Time{})
	if err != nil {
		if strings.Contains(err.Error(), "never fires") {
			return
		}
		t.Fatalf("%q: %v", e.text, err)
	}
	table.zone = w.zone
	want := w.instants(e)
	var got []time.Time
	for at := table.Next(w.from.Add(-1)); !at.IsZero() && at.Before(w.to); at = table.Next(at) {
		got = append(got, at)
	}
	if at := firstDifference(got, want); at >= 0 {
		t.Fatalf("%q: instant %d of %d (%d): %v, want %v", e.text, at, len(got), len(want), sample(got, at, w.zone), sample(want, at, w.zone))
	}
	for range 5 {
		a, b := w.from.Add(randomUpTo(r, w.to.Sub(w.from))), w.from.Add(randomUpTo(r, w.to.Sub(w.from)))
		after, until, n := earlier(a, b), later(a, b), 1+r.IntN(20)
		low, _ := slices.BinarySearchFunc(want, after, func(w, a time.Time) int { return cmp.Or(w.Compare(a), -1) })
		high, _ := slices.BinarySearchFunc(want, until, func(w, u time.Time) int { return cmp.Or(w.Compare(u), -1) })
		newest, last := table.Newest(after, until, n), want[max(low, high-n):high]
		if firstDifference(newest, last) >= 0 {
			t.Fatalf("%q: the newest %d after %s until %s: %v, want %v", e.text, n, after, until, newest, last)
		}
		if next := table.Next(after); low < len(want) && !next.Equal(want[low]) {
			t.Fatalf("%q: next after %s: %s, want %s", e.text, after, next, want[low])
		}
	}
}

// randomUpTo is often a whole second, where after and until differ.
func randomUpTo(r *rand.Rand, d time.Duration) time.Duration {
	at := time.Duration(r.Int64N(int64(d)))
	if r.IntN(2) == 0 {
		return at.Truncate(time.Minute)
	}
	return at
}

func firstDifference(a, b []time.Time) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !a[i].Equal(b[i]) {
			return i
		}
	}
	return -1
}

func sample(times []time.Time, at int, zone *time.Location) []string {
	var texts []string
	for _, t := range times[max(0, at-1):min(len(times), at+2)] {
		texts = append(texts, t.In(zone).Format("2006-01-02T15:04:05Z07:00"))
	}
	return texts
}
