package schedule_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/enginetest/scheduletest"
	"github.com/tarryhq/tarry/internal/schedule"
)

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
		w := scheduletest.NewWalk(zone, from, from.AddDate(1, 0, 0), time.Minute)
		for range many() {
			compare(t, r, w, scheduletest.Some(r, false))
		}
	})
}

func TestChangesOfTheClockSecondBySecond(t *testing.T) {
	eachZone(t, func(t *testing.T, r *rand.Rand, zone *time.Location, year int) {
		for _, change := range changesOf(zone, year) {
			w := scheduletest.NewWalk(zone, change.Add(-4*time.Hour), change.Add(4*time.Hour), time.Second)
			for range many() {
				compare(t, r, w, scheduletest.Some(r, true))
			}
		}
	})
}

// many expressions are tried each time.
func many() int {
	switch {
	case testing.Short():
		return 4
	case os.Getenv("TARRY_TEST_THOROUGH") != "":
		return 100
	}
	return 12
}

// What fires once a year, near a change of the clock, is found from far away as from nearby.
func TestChangesOfTheClockFromFarAway(t *testing.T) {
	eachZone(t, func(t *testing.T, _ *rand.Rand, zone *time.Location, year int) {
		for _, change := range changesOf(zone, year) {
			wall := scheduletest.NewWalk(zone, change, change.Add(time.Second), time.Second).Walls[0]
			for off := -27 * time.Hour; off <= 27*time.Hour; off += 15 * time.Minute {
				table := mustParse(t, wall.Add(off).Format("4 15 2 1 ?"), "", time.Time{}, time.Time{})
				table.SetZone(zone)
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
	for _, c := range zoneYears {
		t.Run(strings.ReplaceAll(c.zone, "/", "_"), func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			test(t, scheduletest.Rand(t), zone, c.year)
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
func compare(t *testing.T, r *rand.Rand, w *scheduletest.Walk, e *scheduletest.Expression) {
	t.Helper()
	table, err := schedule.Parse(e.Text, "", time.Time{}, time.Time{})
	if err != nil {
		if strings.Contains(err.Error(), "never fires") {
			return
		}
		t.Fatalf("%q: %v", e.Text, err)
	}
	table.SetZone(w.Zone)
	want := w.Instants(e)
	var got []time.Time
	for at := table.Next(w.From.Add(-1)); !at.IsZero() && at.Before(w.To); at = table.Next(at) {
		got = append(got, at)
	}
	if at := firstDifference(got, want); at >= 0 {
		t.Fatalf("%q: instant %d of %d (%d): %v, want %v", e.Text, at, len(got), len(want), sample(got, at, w.Zone), sample(want, at, w.Zone))
	}
	for range 5 {
		a, b := w.From.Add(randomUpTo(r, w.To.Sub(w.From))), w.From.Add(randomUpTo(r, w.To.Sub(w.From)))
		after, until, n := a, b, 1+r.IntN(20)
		if b.Before(a) {
			after, until = b, a
		}
		low, _ := slices.BinarySearchFunc(want, after, func(w, a time.Time) int { return cmp.Or(w.Compare(a), -1) })
		high, _ := slices.BinarySearchFunc(want, until, func(w, u time.Time) int { return cmp.Or(w.Compare(u), -1) })
		newest, last := table.Newest(after, until, n), want[max(low, high-n):high]
		if firstDifference(newest, last) >= 0 {
			t.Fatalf("%q: the newest %d after %s until %s: %v, want %v", e.Text, n, after, until, newest, last)
		}
		if next := table.Next(after); low < len(want) && !next.Equal(want[low]) {
			t.Fatalf("%q: next after %s: %s, want %s", e.Text, after, next, want[low])
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
