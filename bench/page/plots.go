package main

import (
	"io"
	"math"
	"strconv"

	"github.com/tarryhq/tarry/bench/plot"
	"github.com/tarryhq/tarry/bench/table"
)

// percentiles is an axis on which each nine takes as much room.
var percentiles = plot.Axis{Title: "percentile", Ticks: []plot.Tick{
	{Value: nines(0.1), Text: "10"}, {Value: nines(0.5), Text: "50"}, {Value: 1, Text: "90"}, {Value: 2, Text: "99"}, {Value: 3, Text: "99.9"}, {Value: 4, Text: "99.99"},
}}

// nines maps a quantile to that axis.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// writeLateness draws a chart for each group: which lateness a share of the messages does not
// exceed.
func writeLateness(w io.Writer, all figures) error {
	var charts []plot.Chart
	var values []float64
	for _, group := range []string{inMemory, brokers, onRedis, onSQL, onMaria, onRabbit} {
		c := plot.Chart{Title: group, X: percentiles}
		for _, s := range allSystems {
			late := all.of(s.name, "late").late()
			if s.group != group || len(late) == 0 {
				continue
			}
			l := plot.Line{Name: s.title, Color: len(c.Lines)}
			for n := nines(0.1); n <= min(4, math.Log10(float64(late.Count()))); n += 0.05 {
				ms := late.Quantile(1-math.Pow(10, -n)).Seconds() * 1e3
				l.Points = append(l.Points, plot.Point{X: n, Y: ms})
				values = append(values, ms)
			}
			c.Lines = append(c.Lines, l)
		}
		if len(c.Lines) > 0 {
			charts = append(charts, c)
		}
	}
	for i := range charts { // one scale for all
		charts[i].Y = plot.Axis{Title: "lateness, ms", Log: true, Ticks: plot.Decades(values, table.Number)}
	}
	return plot.Write(w, charts, 2, "Lateness of messages due at 1,000 a second, by percentile")
}

// short writes a number with as few digits as it needs.
func short(v float64) string {
	unit := ""
	switch {
	case v >= 1e6:
		v, unit = v/1e6, " M"
	case v >= 1e3:
		v, unit = v/1e3, " k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + unit
}

// curve is a figure of growth in a chart.
type curve struct{ figure, name string }

func writeGrowthPlot(w io.Writer, all figures) error {
	var charts []plot.Chart
	for _, x := range []struct {
		title, axis string
		log         bool
		curves      []curve
	}{
		{"Calls", "a second", false, []curve{{"push/s", "push"}, {"cancel/s", "cancel by key"}}},
		{"Lateness at 1,000 a second", "ms", true, []curve{{"p50-ms", "p50"}, {"p99-ms", "p99"}, {"p99.9-ms", "p99.9"}}},
		{"Memory of the process", "MB", false, []curve{{"memory-MB", "resident"}}},
		{"Back after kill -9", "s", false, []curve{{"back-s", "opened, and a push answered"}}},
	} {
		c := plot.Chart{Title: x.title}
		var pending, values []float64
		for i, curve := range x.curves {
			l := plot.Line{Name: curve.name, Color: i, Marked: true}
			for _, r := range all.of("disk", "growth") {
				if v, ok := (figures{r}).get(curve.figure); ok {
					l.Points = append(l.Points, plot.Point{X: r.Figures["pending"], Y: v})
					pending, values = append(pending, r.Figures["pending"]), append(values, v)
				}
			}
			c.Lines = append(c.Lines, l)
		}
		c.X = plot.Axis{Title: "pending messages", Log: true, Ticks: plot.Decades(pending, short)}
		c.Y = plot.Axis{Title: x.axis, Log: x.log, Ticks: plot.Steps(values, short)}
		if x.log {
			c.Y.Ticks = plot.Decades(values, short)
		}
		charts = append(charts, c)
	}
	return plot.Write(w, charts, 2, "The disk engine with ever more pending messages")
}
