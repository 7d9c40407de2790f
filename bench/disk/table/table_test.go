package main

import (
	"io"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/bench/table"
)

// Each turn is a ratio for itself: the machine was twice as fast in the second.
const turns = `cpu: some
BenchmarkPush/impl=bare/clients=64,keys=order-2         1   100 msgs/s  2 cpu-us/msg
BenchmarkPush/impl=store/clients=64,keys=order-2        1   80 msgs/s  4 cpu-us/msg
BenchmarkPush/impl=store/clients=64,keys=order#01-2     1   140 msgs/s  5 cpu-us/msg
BenchmarkPush/impl=bare/clients=64,keys=order#01-2      1   200 msgs/s  2 cpu-us/msg
BenchmarkPush/impl=bare/clients=64,keys=order#02-2      1   100 msgs/s  1 cpu-us/msg
BenchmarkPush/impl=store/clients=64,keys=order#02-2     1   60 msgs/s  4 cpu-us/msg
BenchmarkPush/impl=bare/clients=64,keys=random-2        1   1000 msgs/s
BenchmarkPush/impl=store/clients=64,keys=random-2       1   690 msgs/s
BenchmarkBatch/impl=store/clients=8,keys=order-2        1   390 msgs/s
BenchmarkLateness/impl=store-2                          1   0.9 p99-ms  8 max-ms   0 lost  0 early
BenchmarkLateness/impl=store#01-2                       1   1 p99-ms  9 max-ms   1 lost  0 early
BenchmarkLateness/impl=store#02-2                       1   5 p99-ms  7 max-ms   0 lost  0 early
sizes: 3 turns
`

func TestTable(t *testing.T) {
	expect(t, write, turns, "Measured on: some, with `3 turns`."+`

| | bare log | disk engine | × bare log |
|---|---:|---:|---:|
| push, 64 clients: messages/s | 100 | 80 | 0.7 |
| – CPU µs each | 2 | 4 | 0.4 |
| – random keys | 1,000 | 690 | 0.69 |
| push, 100 a call, 8 clients, first million |  | 390 |  |
| – p99 |  | 1 |  |
| – early, lost or twice |  | 1 |  |
`)
}

func TestMissedTargets(t *testing.T) {
	expect(t, writeMissed, turns, `missed: Push/impl=store/clients=64,keys=random msgs/s: ≥ 0.7 of the bare log
missed: Lateness/impl=store early+lost+twice: 0
`)
}

func TestHugeTable(t *testing.T) {
	expect(t, writeHuge, `cpu: some
BenchmarkHuge/side=large/do=push-2     1  60 msgs/s  7 rss-B/msg
BenchmarkHuge/side=small/do=push-2     1  100 msgs/s  90 rss-B/msg
BenchmarkHuge/side=small/do=push#01-2  1  50 msgs/s  90 rss-B/msg
BenchmarkHuge/side=large/do=push#01-2  1  30 msgs/s  8.5 rss-B/msg
BenchmarkHuge/side=large/do=reopen-2   1  4 reopen-s  0 missing
sizes: many
`, "Measured on: some, with `many`."+`

| | large | small | ratio | to reach | reached |
|---|---:|---:|---:|---|---|
| push, 64 clients: messages/s | 45 | 75 | 0.6 | ≥ 0.6 | yes |
| resident memory, all told: bytes for each message | 7.75 |  |  | ≤ 8 | no |
| back after kill -9, s | 4 |  |  | ≤ 5 | yes |
| – missing of those in the lists | 0 |  |  | 0 | yes |
`)
}

func expect(t *testing.T, write func(w io.Writer, r *table.Results), in, want string) {
	t.Helper()
	r, err := table.Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	write(&out, r)
	if out.String() != want {
		t.Errorf("it writes\n%swant\n%s", out.String(), want)
	}
}
