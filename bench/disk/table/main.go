// Command table puts a table of the disk engine's benchmarks into docs/performance.md, between
// the two marks in that file. It reads the output of the benchmarks on standard input. With
// -huge (a store with very many pending messages) or -behind (a bare log behind a client) it
// prints the table instead. What misses its target goes to standard error.
//
//	go test -bench … | go run ./disk/table ../docs/performance.md
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/tarryhq/tarry/bench/table"
)

func main() {
	switch os.Args[len(os.Args)-1] {
	case "-huge":
		table.Print(writeHuge)
	case "-behind":
		table.Print(writeBehind)
	default:
		table.Main("bench-disk", write)
	}
}

func write(w io.Writer, r *table.Results) {
	writeBeside(w, r, bare, "bare log", rows)
	writeMissed(os.Stderr, r)
}

func writeBehind(w io.Writer, r *table.Results) {
	writeBeside(w, r, behind, "bare log behind a client", behindRows)
}

// writeBeside writes the table that compares the store with another system.
func writeBeside(w io.Writer, r *table.Results, other, name string, rows []row) {
	fmt.Fprintf(w, "Measured on: %s, with `%s`.\n\n", r.Config["cpu"], r.Config["sizes"])
	fmt.Fprintf(w, "| | %s | disk engine | × %[1]s |\n|---|---:|---:|---:|\n", name)
	for _, row := range rows {
		row.write(w, r, other)
	}
}

func writeMissed(w io.Writer, r *table.Results) {
	for _, row := range rows {
		if row.reached(r) == "no" {
			fmt.Fprintf(w, "missed: %s %s: %s\n", row.name(store), row.unit, goals(row.targets))
		}
	}
}
