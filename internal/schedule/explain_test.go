package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/schedule"
)

var december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestExplainSaysWhenItFires(t *testing.T) {
	for spec, want := range map[string]string{
		"0 2,14 * * MON-FRI":  "at 02:00 and 14:00, Monday to Friday",
		"@daily":              "at 00:00, every day",
		"@hourly":             "at minute 0, every hour",
		"@weekly":             "at 00:00, on Sunday",
		"@monthly":            "at 00:00, on day 1 of the month",
		"@yearly":             "at 00:00, on day 1 of the month, in January",
		"* * * * *":           "every minute",
		"* * * * * *":         "every second",
		"*/10 * * * * *":      "every 10 seconds",
		"30 5 * * * *":        "at second 30, at minute 5, every hour",
		"*/15 * * * *":        "every 15 minutes",
		"*/15 9-17 * * 1-5":   "every 15 minutes, in hours 9 to 17, Monday to Friday",
		"*/7 * * * *":         "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56, every hour",
		"30 */2 * * *":        "at minute 30, every 2 hours, every day",
		"* 3 * * *":           "every minute, in hour 3, every day",
		"15 30 3 * * *":       "at 03:30:15, every day",
		"0 0 1,15,L * *":      "at 00:00, on day 1, day 15 and the last day of the month",
		"0 0 1-7 * *":         "at 00:00, on day 1 to day 7 of the month",
		"0 0 L-2,LW,15W * *":  "at 00:00, on the day 2 before the last, the last weekday and the weekday nearest to day 15 of the month",
		"0 0 * * FRI#3,MON#L": "at 00:00, on the third Friday of the month and the last Monday of the month",
		"0 0 13 * FRI":        "at 00:00, on day 13 of the month or on Friday",
		"0 0 */2 * MON":       "at 00:00, on day 1, day 3, day 5, day 7, day 9, day 11, day 13, day 15, day 17, day 19, day 21, day 23, day 25, day 27, day 29 and day 31 of the month if it is Monday",
		"0 0 1-31 * MON":      "at 00:00, every day",
		"0 0 * 1,7-9 SAT,SUN": "at 00:00, on Sunday and Saturday, in January and July to September",
		"0 0 29 FEB ?":        "at 00:00, on day 29 of the month, in February",
		"0 1-23/2 * * *":      "at minute 0, in hours 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21 and 23, every day",
		"0 0-23 * * *":        "at minute 0, every hour",
		"@every 90s":          "every 1m30s, counted from 1970-01-01T00:00:00Z",
		"@EVERY   1d":         "every 24h, counted from 1970-01-01T00:00:00Z",
		"0 0 12 ? JAN-MAR * ": "at 12:00, every day, in January to March",
	} {
		table, err := schedule.Parse(spec, "", time.Time{}, time.Time{})
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		if !strings.HasPrefix(spec, "@every") && !strings.HasPrefix(spec, "@EVERY") {
			want += ", in UTC"
		}
		if got := table.Explain(december); !slices.Equal(got, []string{want}) {
			t.Errorf("%q:\n got %q\nwant %q", spec, got, want)
		}
	}
}

func TestExplainSaysWhatChangesOfTheClockDo(t *testing.T) {
	for _, c := range []struct {
		spec, zone string
		from       time.Time
		want       []string
	}{
		{"30 2 * * *", "Europe/Berlin", december, []string{
			"on 2027-03-28 02:30 does not exist: it fires at 03:00",
			"on 2027-10-31 02:30 comes twice: it fires the first time only"}},
		{"*/15 2 * * *", "Europe/Berlin", december, []string{
			"on 2027-03-28 02:00 to 02:45 do not exist: it fires once at 03:00",
			"on 2027-10-31 02:00 to 02:45 comes twice: it fires the first time only"}},
		{"*/15 * * * *", "Europe/Berlin", december, []string{
			"on 2027-03-28 02:00 to 02:45 do not exist: it goes on at 03:00",
			"on 2027-10-31 02:00 to 02:45 comes twice: it fires both times"}},
		{"0 * * * *", "Australia/Lord_Howe", december, []string{
			"on 2027-10-03 02:00 does not exist: it goes on at 03:00"}},
		{"45 1 * * *", "Australia/Lord_Howe", december, []string{
			"on 2027-04-04 01:45 comes twice: it fires the first time only"}},
		{"0 12 * * *", "Europe/Berlin", december, []string{"no change of the clock in the next 12 months affects it"}},
		{"0 2 * * *", "Asia/Kolkata", december, []string{"no change of the clock in the next 12 months affects it"}},
		{"0 0 * * *", "Asia/Beirut", december, []string{
			"on 2027-03-28 00:00 does not exist: it fires at 01:00"}},
		{"0 12 * * *", "Pacific/Apia", time.Date(2011, 10, 1, 0, 0, 0, 0, time.UTC), []string{
			"on 2011-12-30 12:00 does not exist: it fires at 2011-12-31 00:00"}},
		{"0 2 * * MON", "Europe/Berlin", december, []string{"no change of the clock in the next 12 months affects it"}},
	} {
		table, err := schedule.Parse(c.spec, c.zone, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Explain(c.from)[1:]; !slices.Equal(got, c.want) {
			t.Errorf("%q in %s:\n got %q\nwant %q", c.spec, c.zone, got, c.want)
		}
	}
}

func TestExplainKeepsToItsBounds(t *testing.T) {
	start, end := time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 9, 1, 0, 0, 0, 0, time.UTC)
	table, err := schedule.Parse("30 2 * * *", "Europe/Berlin", start, end)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"at 02:30, every day, in Europe/Berlin", "no change of the clock in the next 12 months affects it"}
	if got := table.Explain(december); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if table, err = schedule.Parse("@every 1h", "Europe/Berlin", start, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := table.Explain(december); !slices.Equal(got, []string{"every 1h, counted from 2027-06-01T00:00:00Z"}) {
		t.Errorf("got %q", got)
	}
}
