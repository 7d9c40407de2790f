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
	Field: []table.System{{Impl: "beanstalkd", Title: "beanstalkd in memory"}, {Impl: "beanstalkd-synced", Title: "beanstalkd -b -f0"}},
	Own: []table.System{
		{Impl: "tarry-mem", Title: "tarry in memory", Ratio: "ratio, in memory"},
		{Impl: "tarry-disk", Title: "tarry -b", Ratio: "ratio, -b"},
	},
	Rows: []table.Row{
		{Scenario: "Put", Unit: "jobs/s", Text: "put, 64 clients that wait for each answer: jobs a second", Better: table.More},
		{Scenario: "Pipelined", Unit: "jobs/s", Text: "put, 8 clients with 100 under way: jobs a second", Better: table.More},
		{Scenario: "Pairs", Unit: "jobs/s", Text: "reserve and delete, 64 clients: jobs a second", Better: table.More},
		{Scenario: "Burst", Unit: "s", Text: "burst, all released at once to 64 that wait: to the last delete, s", Better: table.Less},
		{Scenario: "Pending", Unit: "B/job", Text: "memory of a delayed job, bytes", Better: table.Less},
	},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, with %s. Bodies have 200 bytes. A ratio says how many times better than the better beanstalkd.\n\n", r.Config["cpu"], r.Config["beside"])
	comparison.Write(w, r)
}
