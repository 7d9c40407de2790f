// Command table puts the table of the RabbitMQ benchmarks into docs/engines/rabbitmq.md,
// between the two marks in that file. It reads the output of the benchmarks on standard input.
//
//	go test -bench … | go run ./rabbit/table ../docs/engines/rabbitmq.md
package main

import (
	"fmt"
	"io"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-rabbit", write) }

var comparison = table.Comparison{
	Systems: []table.System{
		{Impl: "ttl-queue", Title: "TTL queues"},
		{Impl: "message-ttl", Title: "message TTLs"},
		{Impl: "tarry-10ms", Title: "tarry, 10 ms"},
		{Impl: "tarry-100ms", Title: "tarry, 100 ms"},
		{Impl: "tarry-1s", Title: "tarry, 1 s"},
	},
	Rows: []table.Row{
		{Scenario: "Push", Unit: "msgs/s", Text: "push, 64 clients, %s: messages/s"},
		{Scenario: "Burst", Unit: "msgs/s", Text: "burst, 3.1 s delay: arrivals/s"},
		{Scenario: "Burst", Unit: "early", Text: "burst: early"},
		{Scenario: "Lateness", Unit: "p99-ms", Text: "lateness, %s: p99, ms"},
	},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, RabbitMQ %s.\n\n", r.Config["cpu"], r.Config["rabbitmq"])
	comparison.Write(w, r)
}
