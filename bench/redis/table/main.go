// Command table turns the output of the Redis benchmarks, on standard input, into
// the table of docs/engines/redis.md, between the two marks in that file.
//
//	go test -bench … | go run ./redis/table ../docs/engines/redis.md
package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

func main() { table.Main("bench-redis", write) }

var impls = []string{"asynq", "tarry", "tarry-4-shards"}

// better says which of two figures is.
type better int

const (
	neither better = iota
	more
	less
)

var rows = []struct {
	scenario, unit, text string
	better               better
}{
	{"Push", "msgs/s", "push, single calls of 64 clients: messages a second", more},
	{"PushBatch", "msgs/s", "push, 100 a call where there are batches, %s: messages a second", more},
	{"Cancel", "msgs/s", "cancel by key, single calls of 64 clients: messages a second", more},
	{"CancelDepth", "p50-us", "cancel by key, one client, %s: p50, µs", less},
	{"Lateness", "p50-ms", "lateness, due at a steady rate: p50, ms", less},
	{"Lateness", "p99-ms", "lateness: p99, ms", less},
	{"Lateness", "max-ms", "lateness: the most, ms", less},
	{"Lateness", "early", "lateness: handled early", neither},
	{"Lateness", "lost", "lateness: lost", neither},
	{"Burst", "s", "burst, all due in one instant: to the last ack, s", less},
	{"Burst", "s-to-first", "burst: to the first handler, s", less},
	{"Burst", "early", "burst: handled early", neither},
	{"Burst", "lost", "burst: lost", neither},
	{"Idle", "commands/s", "idle worker on 8 shards, %s: commands a second", less},
	{"Idle", "requests/s", "idle worker on 8 shards, %s: requests a second", less},
}

func write(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, redis-server %s. A ratio says how many times better than asynq: a rate divided by asynq's, or asynq's time divided by it.\n\n",
		r.Config["cpu"], r.Config["redis-server"])
	fmt.Fprintln(w, "| | asynq | tarry | tarry, 4 shards | ratio | ratio, 4 shards |\n|---|---:|---:|---:|---:|---:|")
	for _, row := range rows {
		params := paramsOf(r, row.scenario)
		for _, param := range params {
			v := figures(r, row.scenario, param, row.unit)
			text := row.text
			if param != "" {
				text = fmt.Sprintf(text, words(param))
			}
			line(w, text, v, ratio(v[1], v[0], row.better), ratio(v[2], v[0], row.better))
		}
		if row.scenario == "CancelDepth" && len(params) == 2 {
			few, many := figures(r, row.scenario, params[0], row.unit), figures(r, row.scenario, params[1], row.unit)
			for i := range many {
				many[i] = divide(many[i], few[i])
			}
			line(w, "cancel by key, one client: the latter ÷ the former", many, "", "")
		}
	}
}

func line(w io.Writer, text string, v []float64, ratios ...string) {
	cells := []string{text}
	for _, f := range v {
		cells = append(cells, number(f))
	}
	fmt.Fprintln(w, "|", strings.Join(append(cells, ratios...), " | "), "|")
}

// paramsOf returns what a scenario was measured with, such as "clients=8" and
// "clients=64"; "" for one that was measured in one way only.
func paramsOf(r *table.Results, scenario string) (params []string) {
	for _, name := range r.Names {
		parts := strings.SplitN(name, "/", 3)
		if parts[0] != scenario {
			continue
		}
		param := strings.Join(parts[min(2, len(parts)):], "")
		if !slices.Contains(params, param) {
			params = append(params, param)
		}
	}
	return params
}

// missing stands for a figure that was not measured.
const missing = -1

// figures returns those of all implementations.
func figures(r *table.Results, scenario, param, unit string) (v []float64) {
	for _, impl := range impls {
		name := scenario + "/impl=" + impl
		if param != "" {
			name += "/" + param
		}
		f, ok := r.Figures[name][unit]
		if !ok {
			f = missing
		}
		v = append(v, f)
	}
	return v
}

// words turns "pending=1000" into "1,000 pending".
func words(param string) string {
	name, value, _ := strings.Cut(param, "=")
	if f, err := strconv.ParseFloat(value, 64); err == nil {
		value = number(f)
	}
	return value + " " + name
}

func ratio(v, asynq float64, b better) string {
	switch b {
	case more:
		return number(divide(v, asynq))
	case less:
		return number(divide(asynq, v))
	}
	return ""
}

func divide(a, b float64) float64 {
	if a < 0 || b <= 0 {
		return missing
	}
	return a / b
}

// number writes three digits, or a whole number with commas.
func number(f float64) string {
	switch {
	case f < 0:
		return "–"
	case f < 100:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	s := strconv.FormatFloat(f, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
