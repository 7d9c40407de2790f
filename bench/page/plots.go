package main

import (
	"io"
	"math"

	"github.com/tarryhq/tarry/bench/plot"
	"github.com/tarryhq/tarry/bench/table"
)

// percentiles is an axis on which each nine takes as much room.
var percentiles = plot.Axis{Title: "percentile", Ticks: []plot.Tick{
	{Value: 0, Text: "0"}, {Value: 1, Text: "90"}, {Value: 2, Text: "99"}, {Value: 3, Text: "99.9"}, {Value: 4, Text: "99.99"},
}}

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
			for nines := 0.0; nines <= min(4, math.Log10(float64(late.Count()))); nines += 0.05 {
				ms := late.Quantile(1-math.Pow(10, -nines)).Seconds() * 1e3
				l.Points = append(l.Points, plot.Point{X: nines, Y: ms})
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
		c.X = plot.Axis{Title: "pending messages", Log: true, Ticks: plot.Decades(pending, table.Number)}
		c.Y = plot.Axis{Title: x.axis, Log: x.log, Ticks: plot.Steps(values, table.Number)}
		if x.log {
			c.Y.Ticks = plot.Decades(values, table.Number)
		}
		charts = append(charts, c)
	}
	return plot.Write(w, charts, 2, "The disk engine with ever more pending messages")
}
