// Command table puts the table of the Redis benchmarks into docs/engines/redis.md, between the
// two marks in that file. It reads the output of the benchmarks on standard input.
//
//	go test -bench … | go run ./redis/table ../docs/engines/redis.md
package main

import (
	"fmt"
	"io"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-redis", write) }

var comparison = table.Comparison{
	Systems: []table.System{
		{Impl: "asynq", Title: "asynq"},
		{Impl: "tarry", Title: "tarry"},
		{Impl: "tarry-4-shards", Title: "tarry, 4 shards"},
	},
	Rows: []table.Row{
		{Scenario: "Push", Unit: "msgs/s", Text: "push, 64 clients: messages/s"},
		{Scenario: "PushBatch", Unit: "msgs/s", Text: "push, 100 a call, %s: messages/s"},
		{Scenario: "Cancel", Unit: "msgs/s", Text: "cancel by key, 64 clients: messages/s"},
		{Scenario: "CancelDepth", Unit: "p50-us", Text: "cancel by key, one client, %s: p50, µs"},
		{Scenario: "Lateness", Unit: "p50-ms", Text: "lateness at a steady rate: p50, ms"},
		{Scenario: "Lateness", Unit: "p99-ms", Text: "lateness: p99, ms"},
		{Scenario: "Lateness", Unit: "early+lost", Text: "lateness: early or lost"},
		{Scenario: "Burst", Unit: "s", Text: "burst, to the last ack, s"},
		{Scenario: "Burst", Unit: "early+lost", Text: "burst: early or lost"},
		{Scenario: "Idle", Unit: "requests/s", Text: "idle worker on 8 shards, %s: requests/s"},
	},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, redis-server %s.\n\n",
		r.Config["cpu"], r.Config["redis-server"])
	comparison.Write(w, r)
}
