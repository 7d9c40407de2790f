// Command table puts the tables of the beanstalkd benchmarks into docs/beanstalkd.md, between
// the two marks in that file. It reads the output of the benchmarks on standard input.
//
//	go test -bench … | go run ./beanstalk/table ../docs/beanstalkd.md
package main

import (
	"fmt"
	"io"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-beanstalk", write) }

var comparison = table.Comparison{
	Systems: []table.System{
		{Impl: "beanstalkd", Title: "beanstalkd in memory"},
		{Impl: "beanstalkd-synced", Title: "beanstalkd -b -f0"},
		{Impl: "tarry-mem", Title: "tarry in memory"},
		{Impl: "tarry-disk", Title: "tarry -b"},
	},
	Rows: []table.Row{
		{Scenario: "Put", Unit: "jobs/s", Text: "put, 64 clients that wait for each answer: jobs/s"},
		{Scenario: "Pipelined", Unit: "jobs/s", Text: "put, 8 clients with 100 under way: jobs/s"},
		{Scenario: "Pairs", Unit: "jobs/s", Text: "reserve and delete, 64 clients: jobs/s"},
		{Scenario: "Burst", Unit: "s", Text: "burst to 64 that wait: to the last delete, s"},
		{Scenario: "Pending", Unit: "B/job", Text: "memory of a delayed job, bytes"},
	},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, with %s. Bodies have 200 bytes.\n\n", r.Config["cpu"], r.Config["beside"])
	comparison.Write(w, r)
}
