// Command table makes tables of the benchmarks of metrics, traces and viewers. It reads the
// output of the benchmarks on standard input and writes to standard output.
//
//	go test -bench … | go run ./cost/table
package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

func main() {
	table.Print(func(w io.Writer, r *table.Results) {
		for name := range r.Figures {
			if strings.HasPrefix(name, "Viewers/") {
				writeViewers(w, r)
				return
			}
		}
		writeMetrics(w, r)
		fmt.Fprintln(w)
		writeTraces(w, r)
	})
}

// rows are the jobs measured on the disk engine.
var rows = []struct{ job, text string }{
	{"push", "HTTP: push, one message a request"},
	{"push-batch", "HTTP: push, 100 a request"},
	{"lease-settle", "HTTP: lease and ack, 10 a request"},
	{"library", "library: push one by one, handle"},
}

// each calls line for each row, with the name of its benchmark and the beginning of its line.
func each(comparison string, line func(name, begin string)) {
	for _, row := range rows {
		line("Cost/"+comparison+"/store=disk/"+row.job, "| "+row.text)
	}
}

func writeMetrics(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s.\n\n", r.Config["cpu"])
	fmt.Fprintln(w, "| | µs a message without | messages a second without | processors' time, % more with metrics | with trends too | time, % more with metrics | with trends too |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|")
	each("metrics", func(name, begin string) {
		fmt.Fprintln(w, strings.Join([]string{begin, r.Get(name, "cpu-us/msg", 1, "%.1f"), r.Get(name, "msgs/s", 1, "%.0f"),
			cost(r, name, "metrics-%cpu"), cost(r, name, "trends-%cpu"),
			cost(r, name, "metrics-%time"), cost(r, name, "trends-%time")}, " | "), "|")
	})
}

func writeTraces(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s. Processors' time, in %% more than without:\n\n", r.Config["cpu"])
	fmt.Fprintln(w, "| | µs a message without | nothing sampled | 1 % sampled | all sampled |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|")
	each("traces", func(name, begin string) {
		fmt.Fprintln(w, strings.Join([]string{begin, r.Get(name, "cpu-us/msg", 1, "%.1f"),
			cost(r, name, "traces-0-%cpu"), cost(r, name, "traces-1-%cpu"), cost(r, name, "traces-100-%cpu")}, " | "), "|")
	})
}

// cost formats the extra cost in percent, and its uncertainty: half the 95 % confidence
// interval.
func cost(r *table.Results, name, unit string) string {
	f := r.Figures[name]
	more, ok := f[unit]
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.1f ± %.1f", more, f[unit+"-within"])
}
