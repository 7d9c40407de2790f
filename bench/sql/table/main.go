// Command table puts the tables of the database benchmarks into docs/engines/sql.md, between
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

var tarry = []table.System{{Impl: "tarry", Title: "tarry", Ratio: "ratio"}}

var postgres = table.Comparison{
	Field: []table.System{{Impl: "river", Title: "River"}, {Impl: "river-tuned", Title: "River, tuned"}},
	Own:   tarry,
	Rows: []table.Row{
		{Scenario: "PostgresPush", Unit: "msgs/s", Text: "push, 64 clients: messages/s", Better: table.More},
		{Scenario: "PostgresPushBatch", Unit: "msgs/s", Text: "push, 100 a call, %s: messages/s", Better: table.More},
		{Scenario: "PostgresLateness", Unit: "p50-ms", Text: "lateness at a steady rate: p50, ms", Better: table.Less},
		{Scenario: "PostgresLateness", Unit: "p99-ms", Text: "lateness: p99, ms", Better: table.Less},
		{Scenario: "PostgresLateness", Unit: "early+lost", Text: "lateness: early or lost"},
		{Scenario: "PostgresBurst", Unit: "s", Text: "burst, to the last ack, s", Better: table.Less},
		{Scenario: "PostgresBurst", Unit: "early+lost", Text: "burst: early or lost"},
		{Scenario: "PostgresDepth", Unit: "us/cancel", Text: "cancel by key, 64 clients, %s: µs each", Better: table.Less},
		{Scenario: "PostgresDepth", Unit: "idle-%", Text: "idle worker, %s: %% of a processor, of server and client together", Better: table.Less},
	},
}

var mariadb = table.Comparison{
	Field: []table.System{{Impl: "table", Title: "polled table"}},
	Own:   tarry,
	Rows: []table.Row{
		{Scenario: "MariaDBPush", Unit: "msgs/s", Text: "push, 64 clients: messages/s", Better: table.More},
		{Scenario: "MariaDBLateness", Unit: "p50-ms", Text: "lateness at a steady rate: p50, ms", Better: table.Less},
		{Scenario: "MariaDBLateness", Unit: "p99-ms", Text: "lateness: p99, ms", Better: table.Less},
		{Scenario: "MariaDBLateness", Unit: "early+lost", Text: "lateness: early or lost"},
	},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s. Ratio: how many times better than the best beside.\n\n", r.Config["cpu"])
	version, _, _ := strings.Cut(r.Config["postgresql"], " ") // a packager's version may follow
	fmt.Fprintf(w, "PostgreSQL %s:\n\n", version)
	postgres.Write(w, r)
	fmt.Fprintf(w, "\nMariaDB %s:\n\n", r.Config["mariadb"])
	mariadb.Write(w, r)
}
