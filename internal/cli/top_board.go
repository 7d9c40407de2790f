package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
)

// column is a column of the table of tarry top.
type column struct {
	name, head, key string // its name for --sort, its heading, and the key that sorts by it
	of              func(r *queueRow, now time.Time) figure
}

// figure is the content of a cell, and its rank: lower comes first.
type figure struct {
	rank float64
	text string
}

var none = figure{math.Inf(1), "-"}

// boardColumns are the columns in order. Narrow screens leave out the last ones.
var boardColumns = []*column{
	{"name", "QUEUE", "n", func(r *queueRow, _ time.Time) figure { return figure{0, r.name()} }},
	{"ready", "READY", "r", func(r *queueRow, _ time.Time) figure { return count(r.Ready) }},
	{"scheduled", "SCHED", "s", func(r *queueRow, _ time.Time) figure { return count(r.Scheduled) }},
	{"leased", "LEASED", "l", func(r *queueRow, _ time.Time) figure { return count(r.Leased) }},
	{"dead", "DEAD", "d", func(r *queueRow, _ time.Time) figure { return count(r.Dead) }},
	{"p50", "P50", "5", func(r *queueRow, _ time.Time) figure { return lateBy(r.late.P50) }},
	{"p99", "P99", "9", func(r *queueRow, _ time.Time) figure { return lateBy(r.late.P99) }},
	{"pushed", "IN/S", "p", func(r *queueRow, _ time.Time) figure { return r.rate(r.pushed) }},
	{"handled", "OUT/S", "t", func(r *queueRow, _ time.Time) figure { return r.rate(r.handled) }},
	{"next-due", "NEXT", "u", func(r *queueRow, now time.Time) figure { return awayFrom(r.NextDue, now) }},
	{"oldest", "OLDEST", "o", func(r *queueRow, now time.Time) figure { return awayFrom(r.OldestReady, now) }},
}

func columnNames() string {
	var names []string
	for _, c := range boardColumns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func (r *queueRow) name() string {
	if r.Paused {
		return "(paused) " + shown(r.Queue)
	}
	return shown(r.Queue)
}

func count(n int64) figure { return figure{-float64(n), few(float64(n))} }

func (r *queueRow) rate(perSecond float64) figure {
	if r.trend == nil {
		return none
	}
	return figure{-perSecond, few(perSecond)}
}

func lateBy(ms *float64) figure {
	if ms == nil {
		return none
	}
	return figure{-*ms, short(time.Duration(*ms * float64(time.Millisecond)))}
}

func awayFrom(t, now time.Time) figure {
	if t.IsZero() {
		return none
	}
	return figure{float64(t.UnixMilli()), short(t.Sub(now).Abs())}
}

// order says which queues are shown, and in which order.
type order struct {
	by      *column
	reverse bool
	filter  string // part of the names, in any case
}

// of returns the rows to show.
func (o *order) of(rows []*queueRow, now time.Time) (shown []*queueRow) {
	part := strings.ToLower(o.filter)
	for _, r := range rows {
		if strings.Contains(strings.ToLower(r.Queue), part) {
			r.rank = o.by.of(r, now).rank
			shown = append(shown, r)
		}
	}
	slices.SortFunc(shown, func(x, y *queueRow) int {
		by := cmp.Compare(x.rank, y.rank)
		if o.by == boardColumns[0] {
			by = cmp.Compare(x.Queue, y.Queue)
		}
		if o.reverse {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(x.Queue, y.Queue))
	})
	return shown
}

// few formats a number in at most six characters, unless it is huge.
func few(f float64) string {
	unit := ""
	for _, larger := range []string{"k", "M", "G"} {
		if f >= 1e5 {
			f, unit = math.Floor(f/1000), larger
		}
	}
	if f < 100 && f != math.Floor(f) {
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.0f", f) + unit
}

// short formats a duration, not negative, in two to four digits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return tarry.FormatDuration(d)
}
