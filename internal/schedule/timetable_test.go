package schedule_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/enginetest/scheduletest"
	"github.com/tarryhq/tarry/internal/schedule"
)

func mustParse(t testing.TB, spec, zone string, start, end time.Time) *schedule.Timetable {
	t.Helper()
	table, err := schedule.Parse(spec, zone, start, end)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// last is the last instant that RFC 3339 can write.
var last = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

func TestParseSaysWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                     `has 0 fields: it takes minute, hour, day of the month, month and day of the week, as in "30 2 * * MON-FRI"`,
		"* * * *":                              "has 4 fields",
		"0 0 0 1 1 ? 2030":                     "there is none for years, give a start and an end",
		"* * * * * * * *":                      "has 8 fields",
		"60 * * * *":                           `minute "60": it takes 0 to 59`,
		"60 * * * * *":                         `second "60": it takes 0 to 59`,
		"0 24 * * *":                           `hour "24": it takes 0 to 23`,
		"0 0 0 * *":                            `day of the month "0": it takes 1 to 31`,
		"0 0 32W * *":                          `day of the month "32w": it takes 1 to 31`,
		"0 0 * 13 *":                           `month "13": it takes 1 to 12 or JAN to DEC`,
		"0 0 * * 8":                            `day of the week "8": it takes 0 to 7 or SUN to SAT`,
		"0 0 * * FRI#6":                        `day of the week "fri#6"`,
		"0 0 * * L":                            `day of the week "l"`,
		"0 0 L * Fri#0":                        `day of the week "fri#0"`,
		"H * * * *":                            `minute "h": it takes 0 to 59`,
		"H(0-9) * * * *":                       `minute "h(0-9)"`,
		"*/0 * * * *":                          `minute "*/0"`,
		"*/60 * * * *":                         `minute "*/60"`,
		"-5 * * * *":                           `minute "-5"`,
		"+5 * * * *":                           `minute "+5"`,
		"1,,2 * * * *":                         `minute "1,,2"`,
		", * * * *":                            `minute ","`,
		"*-5 * * * *":                          `minute "*-5"`,
		"1/2/3 * * * *":                        `minute "1/2/3"`,
		"1.5 * * * *":                          `minute "1.5"`,
		"99999999999999999999 * * * *":         `minute "99999999999999999999"`,
		"CRON_TZ=Europe/Berlin 0 2 * * *":      "the zone is not part of the expression, it is given beside it",
		"TZ=UTC 0 2 * * *":                     "the zone is not part of the expression",
		"TZ=0":                                 "the zone is not part of the expression",
		"@reboot":                              `"@reboot" is unknown: there are @yearly`,
		"@every":                               `"@every" is unknown`,
		"@every x":                             `@every: "x" is not a duration, as in "@every 90s"`,
		"@every 1ms":                           "@every 1ms: the interval is whole seconds, at least 1s",
		"@every 1.5s":                          "the interval is whole seconds",
		"@every 0s":                            "at least 1s",
		"@every -1h":                           "at least 1s",
		"@every 11y":                           "not a duration",
		"@every 4000d":                         "@every 4000d: the interval is at most ten years",
		"@every 200000d":                       "out of range",
		"0 0 30 2 *":                           `"0 0 30 2 *" never fires: no month that it names has such a day`,
		"0 0 31 APR,JUN *":                     "never fires",
		"0 0 31W 2 *":                          "never fires",
		"0\t2 * * *":                           "has control characters: fields are separated by spaces",
		"0 2 * * *\n":                          "has control characters",
		"0 2 * * \u0085":                       "has control characters",
		strings.Repeat("1,", 96) + "1 * * * *": "has 201 bytes, at most 200 are allowed",
	} {
		_, err := schedule.Parse(spec, "", time.Time{}, time.Time{})
		switch {
		case err == nil:
			t.Errorf("%q is taken", spec)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q:\n got %q\nwant %q", spec, err, want)
		case len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\n\t"):
			t.Errorf("%q: not a line: %q", spec, err)
		}
	}
}

func TestParseRefusesZonesThatAreNone(t *testing.T) {
	for zone, want := range map[string]string{
		"Local":                   "the zone Local is another on each machine: name it, as in Europe/Berlin",
		"local":                   "is another on each machine",
		"localtime":               "is another on each machine",
		"Mars/Olympus":            `the zone "Mars/Olympus" is unknown`,
		"Europe//Berlin":          "is unknown",
		"../../../etc/passwd":     "is unknown",
		"/etc/localtime":          "is unknown",
		"zone.tab":                "is unknown",
		"Europe":                  "is unknown",
		"./UTC":                   "is unknown",
		" ":                       "is unknown",
		"UTC\x00":                 "is unknown",
		"+02:00":                  "is unknown",
		strings.Repeat("x", 1000): "is unknown",
	} {
		if _, err := schedule.Parse("@daily", zone, time.Time{}, time.Time{}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%q: %v, want %q", zone, err, want)
		}
	}
}

func TestBoundsAreInstantsToo(t *testing.T) {
	start, end := at("2027-01-01T00:00:00Z"), at("2027-01-03T00:00:00Z")
	for spec, want := range map[string][]string{
		"@daily":     {"2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"},
		"@every 20h": {"2027-01-01T00:00:00Z", "2027-01-01T20:00:00Z", "2027-01-02T16:00:00Z"},
	} {
		table := mustParse(t, spec, "", start, end)
		var got []string
		for next := table.Next(time.Time{}); !next.IsZero(); next = table.Next(next) {
			got = append(got, next.Format(time.RFC3339))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
		newest := table.Newest(time.Time{}, last, 10)
		if len(newest) != len(want) || !newest[0].Equal(start) {
			t.Errorf("%s: the newest are %s", spec, newest)
		}
	}
	// Instants are whole seconds: the first is the one after such a start.
	if next := mustParse(t, "@every 1m", "", start.Add(1), time.Time{}).Next(time.Time{}); !next.Equal(start.Add(time.Second)) {
		t.Errorf("after a start between seconds comes %s", next)
	}
	if next := mustParse(t, "@daily", "", time.Time{}, end.Add(-1)).Next(start.Add(time.Hour)); !next.Equal(at("2027-01-02T00:00:00Z")) {
		t.Errorf("before an end between seconds comes %s", next)
	}
	for spec, bounds := range map[string][2]time.Time{
		"the end is before the start":               {end, start},
		"never fires between its start and its end": {start.Add(time.Second), start.Add(time.Hour)},
		"never fires between":                       {at("9999-12-31T23:59:59Z"), time.Time{}},
	} {
		if _, err := schedule.Parse("@daily", "", bounds[0], bounds[1]); err == nil || !strings.Contains(err.Error(), spec) {
			t.Errorf("%s to %s: %v, want %q", bounds[0], bounds[1], err, spec)
		}
	}
}

func TestEveryCountsFromItsStart(t *testing.T) {
	r := scheduletest.Rand(t)
	for range 300 {
		every := time.Duration(1+r.IntN(1000)) * time.Second
		start, origin := time.Time{}, time.Unix(0, 0).UTC()
		if r.IntN(2) == 0 {
			start = time.Unix(r.Int64N(1e9), 0).UTC()
			origin = start
		}
		table := mustParse(t, "@every "+every.String(), "", start, time.Time{})
		after := origin.Add(every * time.Duration(r.IntN(1000))).Add(randomUpTo(r, time.Hour))
		want := origin
		for !want.After(after) {
			want = want.Add(every)
		}
		if next := table.Next(after); !next.Equal(want) {
			t.Fatalf("%s from %s: after %s comes %s, want %s", every, start, after, next, want)
		}
		if newest := table.Newest(after, want, 3); len(newest) != 1 || !newest[0].Equal(want) {
			t.Fatalf("%s from %s: the newest after %s are %s, want %s", every, start, after, newest, want)
		}
	}
	if next := mustParse(t, "@every 1h", "", time.Time{}, time.Time{}).Next(at("1969-12-31T22:30:00Z")); !next.Equal(at("1969-12-31T23:00:00Z")) {
		t.Errorf("before 1970 comes %s", next)
	}
}

func TestRareDaysAreFound(t *testing.T) {
	for _, c := range []struct{ spec, after, next, newest string }{
		{"0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z", "2096-02-29T00:00:00Z"},
		{"0 0 29W 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z", "2096-02-29T00:00:00Z"},
		{"0 0 ? 2 MON#5", "2072-03-01T00:00:00Z", "2112-02-29T00:00:00Z", "2072-02-29T00:00:00Z"},
		{"59 59 23 31 12 ?", "2027-01-01T00:00:00Z", "2027-12-31T23:59:59Z", "2026-12-31T23:59:59Z"},
	} {
		table := mustParse(t, c.spec, "", time.Time{}, time.Time{})
		if next := table.Next(at(c.after)); !next.Equal(at(c.next)) {
			t.Errorf("%q: after %s comes %s, want %s", c.spec, c.after, next, c.next)
		}
		for _, until := range []time.Time{at(c.after), at(c.next).Add(-1)} {
			if newest := table.Newest(time.Time{}, until, 1); len(newest) != 1 || !newest[0].Equal(at(c.newest)) {
				t.Errorf("%q: the newest until %s are %s, want %s", c.spec, until, newest, c.newest)
			}
		}
	}
}

func TestNothingFiresAfterTheYear9999(t *testing.T) {
	for _, spec := range []string{"* * * * * *", "@every 1s"} {
		table := mustParse(t, spec, "Pacific/Kiritimati", time.Time{}, time.Time{})
		if next := table.Next(last.Add(-1)); !next.Equal(last) {
			t.Errorf("%s: %s", spec, next)
		}
		for _, after := range []time.Time{last, last.Add(1), time.Unix(1<<60, 0), time.Unix(1<<62, 0)} {
			if next := table.Next(after); !next.IsZero() {
				t.Errorf("%s: after %s comes %s", spec, after, next)
			}
			if newest := table.Newest(last.Add(-time.Second), after, 5); len(newest) != 1 || !newest[0].Equal(last) {
				t.Errorf("%s: %s", spec, newest)
			}
		}
	}
}

// TestNewestDoesNotWalkThroughTheSpan would not end if it did: 250 billion seconds.
func TestNewestDoesNotWalkThroughTheSpan(t *testing.T) {
	for _, spec := range []string{"* * * * * *", "@every 1s", "* 2 * * *"} {
		table := mustParse(t, spec, "Europe/Berlin", time.Time{}, time.Time{})
		if newest := table.Newest(time.Time{}, last, 1000); len(newest) != 1000 || !slices.IsSortedFunc(newest, time.Time.Compare) {
			t.Errorf("%s: %d instants, from %s to %s", spec, len(newest), newest[0], newest[len(newest)-1])
		}
		if newest := table.Newest(time.Time{}, last, 0); len(newest) != 0 {
			t.Errorf("%s: %s for none", spec, newest)
		}
	}
}

// In Santiago Saturday 2027-04-03 ends twice: at midnight the clock goes back to 23:00. What
// fires there is found although nothing else does for long.
func TestHourThatComesTwiceOnARareDay(t *testing.T) {
	halves := mustParse(t, "*/30 * 3 4 *", "America/Santiago", time.Time{}, time.Time{})
	for after, want := range map[string]string{
		"2027-04-04T02:30:00Z": "2027-04-04T03:00:00Z",
		"2027-04-04T03:00:00Z": "2027-04-04T03:30:00Z",
		"2027-04-04T03:30:00Z": "2028-04-03T04:00:00Z",
	} {
		if next := halves.Next(at(after)); !next.Equal(at(want)) {
			t.Errorf("after %s comes %s, want %s", after, next, want)
		}
	}
	once := mustParse(t, "30 23 * * SAT", "America/Santiago", time.Time{}, time.Time{})
	for until, want := range map[string]string{
		"2027-04-04T02:29:59Z": "2027-03-28T02:30:00Z",
		"2027-04-04T03:15:00Z": "2027-04-04T02:30:00Z",
		"2027-04-04T03:45:00Z": "2027-04-04T02:30:00Z",
	} {
		if newest := once.Newest(time.Time{}, at(until), 1); len(newest) != 1 || !newest[0].Equal(at(want)) {
			t.Errorf("until %s the newest is %s, want %s", until, newest, want)
		}
	}
}

// Zone files may end early: a rule says what follows their last change. In its years Go
// takes the last day of a leap year for one of the next, and begins a period that the last
// change began where the rule would have.
func TestZonesThatEndInARule(t *testing.T) {
	autumn := at("2028-11-30T06:00:00Z")
	zone := zoneFile(t, []zoneChange{{at("2026-10-30T08:00:00Z"), -6 * 3600}, {autumn, -7 * 3600}}, "MST7MDT,M3.2.0,M11.1.0")
	if _, offset := at("2031-07-01T00:00:00Z").In(zone).Zone(); offset != -6*3600 {
		t.Fatalf("the rule is not in force: %d", offset)
	}
	r := scheduletest.Rand(t)
	for _, middle := range []time.Time{autumn, at("2028-12-31T12:00:00Z"), at("2032-12-31T12:00:00Z"), at("2033-03-13T09:00:00Z")} {
		w := scheduletest.NewWalk(zone, middle.Add(-50*24*time.Hour), middle.Add(20*24*time.Hour), time.Minute)
		for range 20 {
			compare(t, r, w, scheduletest.Some(r, false))
		}
	}
}

type zoneChange struct {
	at     time.Time
	offset int32
}

// zoneFile is a zone in the format of RFC 9636, with changes and then a rule.
func zoneFile(t *testing.T, changes []zoneChange, rule string) *time.Location {
	t.Helper()
	var b bytes.Buffer
	header := func(types, times uint32) {
		b.WriteString("TZif2" + strings.Repeat("\x00", 15))
		binary.Write(&b, binary.BigEndian, []uint32{0, 0, 0, times, types, 4})
	}
	header(1, 0) // of the first version, which is not read
	b.WriteString("\x00\x00\x00\x00\x00\x00LMT\x00")
	header(uint32(len(changes)), uint32(len(changes)))
	for _, c := range changes {
		binary.Write(&b, binary.BigEndian, c.at.Unix())
	}
	for i := range changes {
		b.WriteByte(byte(i))
	}
	for _, c := range changes {
		binary.Write(&b, binary.BigEndian, c.offset)
		b.WriteString("\x00\x00")
	}
	b.WriteString("LMT\x00\n" + rule + "\n")
	zone, err := time.LoadLocationFromTZData("Test/Rule", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func FuzzParse(f *testing.F) {
	for _, seed := range []struct {
		spec, zone string
		from       int64
	}{
		{"0 2,14 * * MON-FRI", "Europe/Berlin", 1796000000},
		{"*/10 * * * * *", "Australia/Lord_Howe", 0},
		{"59 23 L-3,LW,15W 2 FRI#3,MON#L", "", -1e10},
		{"0 0 ? 2 5#5", "Pacific/Apia", 1325000000},
		{"@every 90s", "America/Havana", 1 << 40},
		{"0 0 31,31W 2,4,6,9,11 *", "UTC", 1},
	} {
		f.Add(seed.spec, seed.zone, seed.from)
	}
	f.Fuzz(func(t *testing.T, spec, zone string, from int64) {
		began := time.Now()
		table, err := schedule.Parse(spec, zone, time.Time{}, time.Time{})
		if err != nil {
			return
		}
		before := time.Unix(from%(1<<38), 0)
		table.Explain(before)
		for range 5 {
			next := table.Next(before)
			if next.IsZero() {
				break
			}
			if !next.After(before) || next.Nanosecond() != 0 {
				t.Fatalf("%q in %q: after %s comes %s", spec, zone, before, next)
			}
			if newest := table.Newest(before, next, 9); len(newest) != 1 || !newest[0].Equal(next) {
				t.Fatalf("%q in %q: after %s comes %s, and the newest are %s", spec, zone, before, next, newest)
			}
			before = next
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%q in %q after %d took %s", spec, zone, from, took)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, spec, zone string }{
		{"UTC", "0 2 * * *", ""},
		{"Berlin", "0 2 * * *", "Europe/Berlin"},
		{"Rare", "0 0 ? 2 MON#5", "Europe/Berlin"},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := mustParse(b, c.spec, c.zone, time.Time{}, time.Time{})
			from := at("2073-01-01T00:00:00Z")
			for b.Loop() {
				table.Next(from)
			}
		})
	}
	b.Run("Parse", func(b *testing.B) {
		for b.Loop() {
			mustParse(b, "0 2 * * MON-FRI", "Europe/Berlin", time.Time{}, time.Time{})
		}
	})
}
