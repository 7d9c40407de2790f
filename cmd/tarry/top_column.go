package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// column is one of the table of tarry top.
type column struct {
	name, head, key string // for --sort, above it, and the key that sorts by it
	width           int    // on a screen; 0: what is left
	rank            int    // the higher, the longer it stays on a narrow screen
	text            func(r *boardRow, now time.Time) string
	compare         func(x, y *boardRow) int // what comes first unless it is turned round
}

// boardColumns are the columns, in order.
var boardColumns = []*column{
	{"name", "QUEUE", "n", 0, 99, func(r *boardRow, _ time.Time) string { return shown(r.Queue) }, func(x, y *boardRow) int { return cmp.Compare(x.Queue, y.Queue) }},
	countColumn("ready", "READY", "r", 98, func(r *boardRow) int64 { return r.Ready }),
	countColumn("scheduled", "SCHED", "s", 6, func(r *boardRow) int64 { return r.Scheduled }),
	countColumn("leased", "LEASED", "l", 5, func(r *boardRow) int64 { return r.Leased }),
	countColumn("dead", "DEAD", "d", 8, func(r *boardRow) int64 { return r.Dead }),
	latenessColumn("p50", "P50", "5", 2, func(t *wire.Times) *float64 { return t.P50 }),
	latenessColumn("p99", "P99", "9", 9, func(t *wire.Times) *float64 { return t.P99 }),
	rateColumn("pushed", "IN/S", "p", 1, func(r *boardRow) float64 { return r.PushedPerS }),
	rateColumn("handled", "OUT/S", "t", 7, func(r *boardRow) float64 { return r.AckedPerS }),
	timeColumn("next-due", "NEXT", "u", 4, func(r *boardRow) time.Time { return r.NextDue.Time }),
	timeColumn("oldest", "OLDEST", "o", 3, func(r *boardRow) time.Time { return r.OldestReady.Time }),
}

// columnNamed is a column, nil when there is none.
func columnNamed(name string) *column {
	for _, c := range boardColumns {
		if c.name == name {
			return c
		}
	}
	return nil
}

func columnNames() string {
	var names []string
	for _, c := range boardColumns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func countColumn(name, head, key string, rank int, of func(*boardRow) int64) *column {
	return &column{name, head, key, 6, rank, func(r *boardRow, _ time.Time) string { return few(of(r)) }, func(x, y *boardRow) int { return cmp.Compare(of(y), of(x)) }}
}

func rateColumn(name, head, key string, rank int, of func(*boardRow) float64) *column {
	return &column{name, head, key, 6, rank, func(r *boardRow, _ time.Time) string {
		if r.Trend == nil {
			return "-"
		}
		return fewPerSecond(of(r))
	}, func(x, y *boardRow) int { return cmp.Compare(of(y), of(x)) }}
}

func latenessColumn(name, head, key string, rank int, of func(*wire.Times) *float64) *column {
	ms := func(r *boardRow) *float64 {
		if r.Trend == nil || !latenessKnown(&r.Trend.Lateness) {
			return nil
		}
		return of(&r.Trend.Lateness)
	}
	return &column{name, head, key, 6, rank, func(r *boardRow, _ time.Time) string {
		if late := ms(r); late != nil {
			return short(milliseconds(*late))
		}
		return "-"
	}, func(x, y *boardRow) int {
		a, b := ms(x), ms(y)
		switch {
		case a == nil || b == nil:
			return cmp.Compare(isNil(a), isNil(b))
		}
		return cmp.Compare(*b, *a)
	}}
}

func isNil(f *float64) int {
	if f == nil {
		return 1
	}
	return 0
}

// timeColumn is the time at which something is or was; the earliest comes first, none last.
func timeColumn(name, head, key string, rank int, of func(*boardRow) time.Time) *column {
	return &column{name, head, key, 6, rank, func(r *boardRow, now time.Time) string {
		if t := of(r); !t.IsZero() {
			return short(t.Sub(now).Abs())
		}
		return "-"
	}, func(x, y *boardRow) int {
		a, b := of(x), of(y)
		switch {
		case a.IsZero() && b.IsZero():
			return 0
		case a.IsZero():
			return 1
		case b.IsZero():
			return -1
		}
		return a.Compare(b)
	}}
}

// few writes a number in at most six characters, unless it is astronomical.
func few(n int64) string {
	switch {
	case n < 100_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	case n < 10_000_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dG", n/1_000_000_000)
}

// fewPerSecond writes a rate likewise.
func fewPerSecond(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 1000:
		return fmt.Sprintf("%.1f", f)
	}
	return few(int64(f))
}

// short writes a duration, which is not negative, in at most six characters.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 10_000*24*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
	return tarry.FormatDuration(d.Round(365 * 24 * time.Hour))
}
