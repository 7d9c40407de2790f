// Command table puts the table of the timer benchmarks into docs/timers.md, between the two
// marks in that file. It reads the output of the benchmarks on standard input.
//
//	go test -bench … | go run ./timers/table ../docs/timers.md
package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-timers", write) }

const pending = 10_000_000

var impls = []string{"Wheel", "Runner", "Ring", "Heap", "Runtime", "go-zero"}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, with %d timers pending. Times in nanoseconds but where another unit stands.\n\n", r.Config["cpu"], pending)
	fmt.Fprintln(w, "| implementation | schedule + cancel | the same, many goroutines | allocations | reset, in turn | reset, jumping about | bytes a timer | a collection, ms | longest pause, µs |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, impl := range impls {
		at := fmt.Sprintf("Timers/impl=%s/pending=%d/op=", impl, pending)
		if r.Figures[at+"schedule-cancel"] == nil {
			continue
		}
		fmt.Fprintln(w, "|", strings.Join([]string{
			impl,
			r.Get(at+"schedule-cancel", "ns/op", 1, "%.0f"),
			r.Get(at+"schedule-cancel-parallel", "ns/op", 1, "%.0f"),
			r.Get(at+"schedule-cancel", "allocs/op", 1, "%.0f"),
			r.Get(at+"reset", "ns/op", 1, "%.1f"),
			r.Get(at+"reset-jumping", "ns/op", 1, "%.0f"),
			r.Get(at+"gc", "B/timer", 1, "%.1f"),
			r.Get(at+"gc", "ns/op", 1e-6, "%.1f"),
			r.Get(at+"gc", "pause-us", 1, "%.0f"),
		}, " | "), "|")
	}
	fmt.Fprintln(w, "\n| a million due in one tick | handed over in, ms |\n|---|---:|")
	for _, impl := range impls {
		if name := "Fire/impl=" + impl; r.Figures[name] != nil {
			fmt.Fprintf(w, "| %s | %s |\n", impl, r.Get(name, "ns/op", 1e-6, "%.0f"))
		}
	}
	fmt.Fprintln(w, "\n| of 5,000 timers at a tick of 10 ms | fired early |\n|---|---:|")
	for _, impl := range impls {
		if name := "Early/impl=" + impl; r.Figures[name] != nil {
			fmt.Fprintf(w, "| %s | %s |\n", impl, r.Get(name, "early/op", 1, "%.0f"))
		}
	}
}
