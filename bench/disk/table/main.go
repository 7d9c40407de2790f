// Command table turns the output of the benchmarks of the disk engine, on standard
// input, into a table of docs/benchmarks.md, between the two marks in that file; with -huge
// those of a store in which a great many messages pend.
//
//	go test -bench … | go run ./disk/table ../docs/benchmarks.md
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/tarryhq/tarry/bench/table"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-huge" {
		table.Into(os.Args[2], "bench-disk-huge", writeHuge)
		return
	}
	table.Main("bench-disk", write)
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, with `%s`.\n\n", r.Config["cpu"], r.Config["sizes"])
	fmt.Fprintln(w, "| | bare log | bare log behind a client | disk engine | × bare log | × behind a client | to reach | reached |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---|---|")
	for _, row := range rows {
		row.write(w, r)
	}
}
