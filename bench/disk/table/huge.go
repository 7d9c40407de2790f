package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

// hugeRow compares a figure of the large store with that of the small one.
type hugeRow struct {
	do, unit, text string
	better         table.Better
	ratio          float64 // the ratio must be at least this; 0: no bound
	most           float64 // the figure of the large store must be at most this; negative: no bound
}

const none = -1

var hugeRows = []hugeRow{
	{"fill", "msgs/s", "made, 100 a call by 8 clients: messages/s", table.More, 0, none},
	{"push", "msgs/s", "push, 64 clients: messages/s", table.More, 0.6, none},
	{"cancel", "msgs/s", "cancel by key, 64 clients: messages/s", table.More, 0.6, none},
	{"push", "rss-B/msg", "resident memory, all told: bytes for each message", table.Neither, 0, 8},
	{"push", "disk-B/msg", "bytes of disk for each message", table.Neither, 0, none},
	{"reopen", "reopen-s", "back after kill -9, s", table.Less, 0, 5},
	{"reopen", "missing", "– missing of those in the lists", table.Neither, 0, 0},
	{"reopen", "idle-%", "idle: % of a processor", table.Neither, 0, 0.3},
}

func writeHuge(w io.Writer, r *table.Results) {
	fmt.Fprintf(w, "Measured on: %s, with `%s`.\n\n", r.Config["cpu"], r.Config["sizes"])
	fmt.Fprintln(w, "| | large | small | ratio | to reach | reached |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---|---|")
	for _, row := range hugeRows {
		row.write(w, r)
	}
}

func (x hugeRow) write(w io.Writer, r *table.Results) {
	large, small := "Huge/side=large/do="+x.do, "Huge/side=small/do="+x.do
	v, ok := r.Figures[large][x.unit]
	if !ok {
		return
	}
	cells := []string{x.text, table.Number(v), ""}
	if v, ok := r.Figures[small][x.unit]; ok && x.better != table.Neither {
		cells[2] = table.Number(v)
	}
	ratio := perTurn(r.Turns[large][x.unit], r.Turns[small][x.unit], x.better)
	cells = append(cells, ratioText(ratio, x.better))
	switch {
	case x.ratio > 0:
		cells = append(cells, fmt.Sprintf("≥ %v", x.ratio), yes(!math.IsNaN(ratio) && ratio >= x.ratio))
	case x.most >= 0:
		cells = append(cells, atMost(x.most).String(), yes(slices.Max(r.Turns[large][x.unit]) <= x.most))
	default:
		cells = append(cells, "", "")
	}
	fmt.Fprintln(w, "|", strings.Join(cells, " | "), "|")
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
