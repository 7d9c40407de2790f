// Command table puts a table of the disk engine's benchmarks into docs/performance.md, between
// the two marks in that file. It reads the output of the benchmarks on standard input. With
// -huge (a store with very many pending messages) or -behind (a bare log behind a client) it
// prints the table instead.
//
//	go test -bench … | go run ./disk/table ../docs/performance.md
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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

func write(w io.Writer, r *table.Results) { writeBeside(w, r, bare, "bare log", rows) }

func writeBehind(w io.Writer, r *table.Results) {
	writeBeside(w, r, behind, "bare log behind a client", behindRows)
}

// writeBeside writes the table that compares the store with another system.
func writeBeside(w io.Writer, r *table.Results, other, name string, rows []row) {
	fmt.Fprintf(w, "Measured on: %s, with `%s`.\n\n", r.Config["cpu"], r.Config["sizes"])
	head, rule := []string{"", name, "disk engine", "× " + name}, []string{"---", "---:", "---:", "---:"}
	if hasTargets(rows) {
		head, rule = append(head, "to reach", "reached"), append(rule, "---", "---")
	}
	fmt.Fprintf(w, "|%s |\n|%s|\n", strings.Join(head, " | "), strings.Join(rule, "|"))
	for _, row := range rows {
		row.write(w, r, other, len(head))
	}
}

func hasTargets(rows []row) bool {
	return slices.ContainsFunc(rows, func(x row) bool { return len(x.targets) > 0 })
}
