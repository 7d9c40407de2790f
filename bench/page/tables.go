package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

// column is a figure of a part.
type column struct {
	part, name, title string
	better            table.Better
	what, unit        string // in words, for the list of where others are better
}

var callColumns = []column{
	{"calls", "single/s", "push, 1 caller", table.More, "pushes of one caller", "/s"},
	{"calls", "push/s", "push, 64 callers", table.More, "pushes of 64 callers", "/s"},
	{"calls", "push-cpu-us", "µs of processor for each", table.Less, "processor time of a push", " µs"},
	{"calls", "batch/s", "push, 100 a call, 8 callers", table.More, "pushes in batches", "/s"},
	{"calls", "cancel/s", "cancel by id, 64 callers", table.More, "cancels", "/s"},
}

var dueColumns = []column{
	{"late", "p50-ms", "p50, ms", table.Less, "median lateness", " ms"},
	{"late", "p99-ms", "p99, ms", table.Less, "p99 of lateness", " ms"},
	{"late", "p99.9-ms", "p99.9, ms", table.Neither, "", ""},
	{"late", "max-ms", "most, ms", table.Neither, "", ""},
	{"late", "cpu-us/msg", "µs of processor for each", table.Less, "processor time of a message at 1,000 a second", " µs"},
	{"burst", "s", "burst, s", table.Less, "burst", " s"},
}

var pendingColumns = []column{
	{"pending", "memory-B/msg", "memory, bytes", table.Less, "memory of a pending message", " bytes"},
	{"pending", "disk-B/msg", "disk, bytes", table.Less, "disk space of a pending message", " bytes"},
	{"pending", "back-s", "back after kill -9, s", table.Less, "time until it serves after kill -9", " s"},
	{"pending", "missing", "missing then", table.Neither, "", ""},
}

// writeTable writes a row for each system that has a figure. last, if not nil, makes a further
// cell.
func writeTable(w io.Writer, all figures, columns []column, title string, last func(system) string) {
	head, rule := "| |", "|---|"
	if title == "" {
		head, rule = "| | survives |", "|---|---|"
	}
	for _, c := range columns {
		head, rule = head+" "+c.title+" |", rule+"---:|"
	}
	if last != nil {
		head, rule = head+" "+title+" |", rule+"---|"
	}
	fmt.Fprintln(w, head+"\n"+rule)
	for _, s := range allSystems {
		cells, some := []string{s.text()}, false
		if title == "" {
			cells = append(cells, s.promise)
		}
		for _, c := range columns {
			v, ok := all.of(s.name, c.part).get(c.name)
			some = some || ok
			cells = append(cells, number(v, ok))
		}
		if last != nil {
			cells = append(cells, last(s))
		}
		if some {
			fmt.Fprintln(w, "|", strings.Join(cells, " | "), "|")
		}
	}
}

func (s system) text() string {
	if s.ours {
		return "**" + s.title + "**"
	}
	return s.title
}

func number(v float64, ok bool) string {
	if !ok {
		return "–"
	}
	if v < 0 {
		return "-" + table.Number(-v)
	}
	return table.Number(v)
}

// faults says what a system has done that it must not.
func (all figures) faults(s system) string {
	var texts []string
	for _, fault := range []string{"early", "lost", "twice"} {
		if n := all.of(s.name, "late").sum(fault) + all.of(s.name, "burst").sum(fault); n > 0 {
			texts = append(texts, fmt.Sprintf("**%s %s**", table.Number(n), fault))
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// clearly is by how much another must be better to be listed: less is noise.
const clearly = 1.05

// writeAhead lists where other systems are better than tarry on the same server.
func writeAhead(w io.Writer, all figures) {
	for _, other := range allSystems {
		i := ourIndex(other.group)
		if other.ours || i < 0 {
			continue
		}
		ours, texts := allSystems[i], []string(nil)
		for _, columns := range [][]column{callColumns, dueColumns, pendingColumns} {
			for _, c := range columns {
				own, has := all.of(ours.name, c.part).get(c.name)
				v, ok := all.of(other.name, c.part).get(c.name)
				if !has || !ok || c.better == table.Neither {
					continue
				}
				if c.better == table.More && v > own*clearly || c.better == table.Less && v*clearly < own {
					texts = append(texts, fmt.Sprintf("%s %s%s (%s)", c.what, table.Number(max(v, 0)), c.unit, table.Number(own)))
				}
			}
		}
		if len(texts) > 0 {
			fmt.Fprintf(w, "- **%s** than %s: %s.\n", other.title, ours.title, strings.Join(texts, "; "))
		}
	}
}

// ourIndex returns which of the systems of a group is tarry; -1: none.
func ourIndex(group string) int {
	for i, s := range allSystems {
		if s.ours && s.group == group {
			return i
		}
	}
	return -1
}

var growthColumns = []column{
	{name: "push/s", title: "push, 64 callers"},
	{name: "cancel/s", title: "cancel by key, 64 callers"},
	{name: "p50-ms", title: "lateness p50, ms"},
	{name: "p99-ms", title: "p99, ms"},
	{name: "memory-MB", title: "memory, MB"},
	{name: "disk-B/msg", title: "disk, bytes for each that was added"},
	{name: "back-s", title: "back after kill -9, s"},
	{name: "missing", title: "missing then"},
}

func writeGrowth(w io.Writer, all figures) {
	head, rule := "| pending |", "|---:|"
	for _, c := range growthColumns {
		head, rule = head+" "+c.title+" |", rule+"---:|"
	}
	fmt.Fprintln(w, head+"\n"+rule)
	for _, r := range all.of("disk", "growth") {
		cells := []string{table.Number(r.Figures["pending"])}
		for _, c := range growthColumns {
			v, ok := figures{r}.get(c.name)
			cells = append(cells, number(v, ok))
		}
		fmt.Fprintln(w, "|", strings.Join(cells, " | "), "|")
	}
}
