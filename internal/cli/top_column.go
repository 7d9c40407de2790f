package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// column is a column of the table of tarry top.
type column struct {
	name, head, key string // its name for --sort, its heading, and the key that sorts by it
	of              func(r *boardRow, now time.Time) figure
}

// figure is the content of a cell, and its rank: lower comes first.
type figure struct {
	rank float64
	text string
}

var none = figure{math.Inf(1), "-"}

// boardColumns are the columns in order. Narrow screens leave out the last ones.
var boardColumns = []*column{
	{"name", "QUEUE", "n", func(r *boardRow, _ time.Time) figure { return figure{0, r.name()} }},
	{"ready", "READY", "r", func(r *boardRow, _ time.Time) figure { return count(r.Ready) }},
	{"scheduled", "SCHED", "s", func(r *boardRow, _ time.Time) figure { return count(r.Scheduled) }},
	{"leased", "LEASED", "l", func(r *boardRow, _ time.Time) figure { return count(r.Leased) }},
	{"dead", "DEAD", "d", func(r *boardRow, _ time.Time) figure { return count(r.Dead) }},
	{"p50", "P50", "5", func(r *boardRow, _ time.Time) figure { return lateBy(r.lateness().P50) }},
	{"p99", "P99", "9", func(r *boardRow, _ time.Time) figure { return lateBy(r.lateness().P99) }},
	{"pushed", "IN/S", "p", func(r *boardRow, _ time.Time) figure { return r.rate(r.PushedPerS) }},
	{"handled", "OUT/S", "t", func(r *boardRow, _ time.Time) figure { return r.rate(r.AckedPerS) }},
	{"next-due", "NEXT", "u", func(r *boardRow, now time.Time) figure { return awayFrom(r.NextDue, now) }},
	{"oldest", "OLDEST", "o", func(r *boardRow, now time.Time) figure { return awayFrom(r.OldestReady, now) }},
}

func columnNames() string {
	var names []string
	for _, c := range boardColumns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func (r *boardRow) name() string {
	if r.Paused {
		return "(paused) " + shown(r.Queue)
	}
	return shown(r.Queue)
}

func count(n int64) figure { return figure{-float64(n), few(float64(n))} }

func (r *boardRow) rate(perSecond float64) figure {
	if r.Trend == nil {
		return none
	}
	return figure{-perSecond, few(perSecond)}
}

func lateBy(ms *float64) figure {
	if ms == nil {
		return none
	}
	return figure{-*ms, brief(ms)}
}

func awayFrom(t wire.Time, now time.Time) figure {
	if t.IsZero() {
		return none
	}
	return figure{float64(t.UnixMilli()), short(t.Sub(now).Abs())}
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
