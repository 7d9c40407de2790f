package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

// column is a figure of a part.
type column struct {
	part, name, title string
	better            table.Better
}

var callColumns = []column{
	{"calls", "single/s", "push, 1 caller", table.More},
	{"calls", "push/s", "push, 64 callers", table.More},
	{"calls", "push-cpu-us", "CPU µs each", table.Less},
	{"calls", "batch/s", "push, 100 a call, 8 callers", table.More},
	{"calls", "cancel/s", "cancel by id, 64 callers", table.More},
}

var dueColumns = []column{
	{"late", "p50-ms", "p50, ms", table.Less},
	{"late", "p99-ms", "p99, ms", table.Less},
	{"late", "p99.9-ms", "p99.9, ms", table.Neither},
	{"late", "cpu-us/msg", "CPU µs each", table.Less},
	{"burst", "s", "burst, s", table.Less},
}

var pendingColumns = []column{
	{"pending", "memory-B/msg", "memory, bytes", table.Less},
	{"pending", "disk-B/msg", "disk, bytes", table.Less},
	{"pending", "back-s", "back after kill -9, s", table.Less},
}

// writeTable writes a row for each system that has a figure, with its faults after its name.
func writeTable(w io.Writer, all figures, columns []column, promises bool, faults []fault) {
	head, rule := "| |", "|---|"
	if promises {
		head, rule = "| | survives |", "|---|---|"
	}
	for _, c := range columns {
		head, rule = head+" "+c.title+" |", rule+"---:|"
	}
	fmt.Fprintln(w, head+"\n"+rule)
	for _, s := range allSystems {
		cells, some := []string{s.text() + all.faults(s, faults)}, false
		if promises {
			cells = append(cells, s.promise)
		}
		for _, c := range columns {
			v, ok := all.of(s.name, c.part).get(c.name)
			some = some || ok
			text := number(v, ok)
			if ok && all.ahead(s, c, v) {
				text = "**" + text + "**"
			}
			cells = append(cells, text)
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

// fault is something that a system must not do, and the part in which it is counted.
type fault struct{ part, name string }

var (
	dueFaults = []fault{
		{"late", "early"}, {"late", "lost"}, {"late", "twice"},
		{"burst", "early"}, {"burst", "lost"}, {"burst", "twice"},
	}
	pendingFaults = []fault{{"pending", "missing"}}
)

// faults says which of them a system has, and how often.
func (all figures) faults(s system, faults []fault) string {
	text, sums := "", make(map[string]float64)
	for _, f := range faults {
		sums[f.name] += all.of(s.name, f.part).sum(f.name)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if sums[name] > 0 {
			text += fmt.Sprintf(", **%s %s**", table.Number(sums[name]), name)
		}
	}
	return text
}

// clearly is by how much another must be better to be marked: less is noise.
const clearly = 1.05

// ahead says whether another system's figure is better than that of tarry on the same server.
func (all figures) ahead(other system, c column, v float64) bool {
	i := ourIndex(other.group)
	if other.ours || i < 0 {
		return false
	}
	own, has := all.of(allSystems[i].name, c.part).get(c.name)
	return has && (c.better == table.More && v > own*clearly || c.better == table.Less && v*clearly < own)
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
	{name: "disk-B/msg", title: "disk, bytes each"},
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
