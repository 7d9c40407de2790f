package table

import (
	"strings"
	"testing"
)

func TestComparison(t *testing.T) {
	c := Comparison{
		Systems: []System{{"slow", "Slow"}, {"slower", "Slower"}, {"tarry", "tarry"}},
		Rows: []Row{
			{Scenario: "Push", Unit: "msgs/s", Text: "push"},
			{Scenario: "Cancel", Unit: "us", Text: "cancel, %s"},
			{Scenario: "Push", Unit: "lost", Text: "lost"},
			{Scenario: "Cancel", Unit: "idle", Text: "idle, %s"},
		},
	}
	r, err := Read(strings.NewReader(`goos: linux
BenchmarkPush/impl=slow-2         1   1000 msgs/s   0 lost
BenchmarkPush/impl=tarry-2        1   9000 msgs/s   0 lost
BenchmarkPush/impl=slow#01-2      1   3000 msgs/s   0 lost
BenchmarkPush/impl=tarry#01-2     1   4000 msgs/s   0 lost
BenchmarkPush/impl=tarry#02-2     1   8000 msgs/s   0 lost
BenchmarkCancel/impl=slow/pending=1000-2     1   30 us
BenchmarkCancel/impl=slow/pending=2000-2     1   60 us
BenchmarkCancel/impl=slower/pending=1000-2   1   40 us
BenchmarkCancel/impl=tarry/pending=1000-2    1   10 us  5 idle
BenchmarkCancel/impl=tarry/pending=2000-2    1   15 us
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c.Write(&out, r)
	if want := `| | Slow | Slower | tarry |
|---|---:|---:|---:|
| push | 2,000 | – | 8,000 |
| cancel, 1,000 pending | 30 | 40 | 10 |
| cancel, 2,000 pending | 60 | – | 15 |
| lost | 0 | – | 0 |
| idle, 1,000 pending | – | – | 5 |
`; out.String() != want {
		t.Errorf("it writes\n%swant\n%s", out.String(), want)
	}
}
