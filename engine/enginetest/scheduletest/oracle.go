// Package scheduletest has what tests of schedules share: an oracle that looks at the clock on
// the wall step by step, and a year in which processes die.
package scheduletest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Rand is a source of the seed in the environment variable TARRY_TEST_SEED, or of a random one,
// which it logs.
func Rand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("TARRY_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TARRY_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// An Expression made at random, beside what it means in the plainest form: which values
// each field allows, and which days.
type Expression struct {
	Text                 string
	second, minute, hour []bool
	month                []bool
	dom, dow             func(day time.Time) bool
	domWild, dowWild     bool
	everyHour            bool
}

func (e *Expression) day(d time.Time) bool {
	switch {
	case !e.month[d.Month()]:
		return false
	case e.domWild || e.dowWild:
		return e.dom(d) && e.dow(d)
	default:
		return e.dom(d) || e.dow(d)
	}
}

func (e *Expression) time(t time.Time) bool {
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

// Some makes an expression of five fields, or of six with seconds.
func Some(r *rand.Rand, seconds bool) *Expression {
	e := &Expression{second: make([]bool, 60)}
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
	e.Text = strings.Join([]string{minute, hour, dom, month, dow}, " ")
	if seconds {
		e.Text = second + " " + e.Text
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

// A Walk goes step by step through a span of time and looks at the clock on the wall.
type Walk struct {
	Zone     *time.Location
	From, To time.Time
	step     time.Duration
	Walls    []time.Time // what the clock shows, as times of UTC, from three hours before From on
}

// runUp is as long as a walk must have looked to know what is shown again.
const runUp = 3 * time.Hour

// NewWalk walks from one instant to another, not included.
func NewWalk(zone *time.Location, from, to time.Time, step time.Duration) *Walk {
	w := &Walk{Zone: zone, From: from, To: to, step: step}
	for at := from.Add(-runUp); at.Before(to); at = at.Add(step) {
		l := at.In(zone)
		w.Walls = append(w.Walls, time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC))
	}
	return w
}

// Instants are those of the span at which an expression fires.
func (w *Walk) Instants(e *Expression) []time.Time {
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
	shown := w.Walls[0] // the farthest that the clock has shown
	for i, wall := range w.Walls {
		fires := matches(wall)
		if !e.everyHour {
			fires = fires && wall.After(shown)
			for skipped := shown.Add(w.step); skipped.Before(wall); skipped = skipped.Add(w.step) {
				fires = fires || matches(skipped)
			}
		}
		if at := w.From.Add(time.Duration(i)*w.step - runUp); fires && !at.Before(w.From) {
			fired = append(fired, at)
		}
		if wall.After(shown) {
			shown = wall
		}
	}
	return fired
}
