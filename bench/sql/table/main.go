// Command table puts the table of the PostgreSQL benchmarks into docs/engines/sql.md, between
// the two marks in that file. It reads the output of the benchmarks on standard input.
//
//	go test -bench … | go run ./sql/table ../docs/engines/sql.md
package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-sql", write) }

var comparison = table.Comparison{
	Systems: []table.System{
		{Impl: "river", Title: "River"},
		{Impl: "river-tuned", Title: "River, tuned"},
		{Impl: "tarry", Title: "tarry"},
	},
	Rows: []table.Row{
		{Scenario: "PostgresPush", Unit: "msgs/s", Text: "push, 64 clients: messages/s"},
		{Scenario: "PostgresPushBatch", Unit: "msgs/s", Text: "push, 100 a call, %s: messages/s"},
		{Scenario: "PostgresLateness", Unit: "p50-ms", Text: "lateness at a steady rate: p50, ms"},
		{Scenario: "PostgresLateness", Unit: "p99-ms", Text: "lateness: p99, ms"},
		{Scenario: "PostgresLateness", Unit: "early+lost", Text: "lateness: early or lost"},
		{Scenario: "PostgresBurst", Unit: "s", Text: "burst, to the last ack, s"},
		{Scenario: "PostgresBurst", Unit: "early+lost", Text: "burst: early or lost"},
		{Scenario: "PostgresDepth", Unit: "us/cancel", Text: "cancel by key, 64 clients, %s: µs each"},
		{Scenario: "PostgresDepth", Unit: "idle-%", Text: "idle worker, %s: %% of a processor, of server and client together"},
	},
}

func write(w io.Writer, r *table.Results) {
	version, _, _ := strings.Cut(r.Config["postgresql"], " ") // a packager's version may follow
	fmt.Fprintf(w, "Measured on: %s, PostgreSQL %s.\n\n", r.Config["cpu"], version)
	comparison.Write(w, r)
}
