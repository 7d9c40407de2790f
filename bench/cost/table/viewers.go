package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

// kinds are what viewers look at; paces are how fast messages are pushed.
var (
	kinds = []struct{ name, text string }{
		{"overview", "all queues"}, {"queue", "the queue, by events alone"}, {"page", "the page of the queue"},
	}
	paces = []struct{ name, text string }{{"rate", "at a rate"}, {"most", "as fast as it goes"}}
)

func writeViewers(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s.\n\n", r.Config["cpu"])
	fmt.Fprintln(w, "| viewers of | pushed | messages a second without | with, in parts of that | server's µs a message without | with | processor of the viewers, % | events, and answers to pages, a second |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|")
	for _, k := range kinds {
		for _, p := range paces {
			name := "Viewers/store=disk/kind=" + k.name + "/" + p.name
			fmt.Fprintln(w, strings.Join([]string{"| " + k.text, p.text, r.Get(name, "msgs/s", 1, "%.0f"),
				ratio(r, name), r.Get(name, "cpu-us/msg", 1, "%.0f"), r.Get(name, "watched-cpu-us/msg", 1, "%.0f"),
				r.Get(name, "%viewers-cpu", 1, "%.1f"), r.Get(name, "events/s", 1, "%.0f") + ", " + r.Get(name, "reads/s", 1, "%.0f")}, " | "), "|")
		}
	}
}

// ratio formats the median of the pairs, and its uncertainty: half the 95 % confidence
// interval, estimated from the interquartile range of the pairs.
func ratio(r *table.Results, name string) string {
	f := r.Figures[name]
	median, ok := f["ratio"]
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.2f ± %.2f", median, 1.57*f["ratio-apart"]/math.Sqrt(f["rounds"]))
}
