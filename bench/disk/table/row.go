package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/bench/table"
)

// The systems compared.
const (
	bare   = "bare"
	behind = "behind" // the bare log behind a client of tarry
	store  = "store"
)

// row is a line of the table: one figure for each system.
type row struct {
	// scenario, param and unit select the figure.
	scenario, param, unit string
	text                  string
	better                table.Better
	worst                 bool     // use the worst turn, not the median; a unit such as "lost+twice" is a sum
	targets               []target // all must be reached
}

// target is a goal of a row.
type target struct {
	than  string  // divide the store by this system; "": take the figure itself
	least float64 // the ratio must be at least this, the figure itself at most
}

func times(least float64, than string) target { return target{than, least} }

func atMost(v float64) target { return target{"", v} }

func (t target) String() string {
	switch {
	case t.than == bare:
		return fmt.Sprintf("≥ %v of the bare log", t.least)
	case t.least == 0:
		return "0"
	}
	return "≤ " + table.Number(t.least)
}

func (x row) name(impl string) string {
	name := x.scenario + "/impl=" + impl
	if x.param != "" {
		name += "/" + x.param
	}
	return name
}

// write writes the line that compares the store with another system, or nothing if the store
// has no such figure.
func (x row) write(w io.Writer, r *table.Results, other string) {
	if _, ok := x.figure(r, store); !ok {
		return
	}
	cells := []string{x.text}
	for _, impl := range []string{other, store} {
		text := ""
		if v, ok := x.figure(r, impl); ok {
			text = table.Number(v)
		}
		cells = append(cells, text)
	}
	cells = append(cells, ratioText(x.ratio(r, other), x.better))
	fmt.Fprintln(w, "|", strings.Join(cells, " | "), "|")
}

// ratioText returns "" if there is no ratio, or if neither more nor less is better.
func ratioText(v float64, better table.Better) string {
	if math.IsNaN(v) || better == table.Neither {
		return ""
	}
	return table.Number(v)
}

func goals(targets []target) string {
	var texts []string
	for _, t := range targets {
		texts = append(texts, t.String())
	}
	return strings.Join(texts, ", ")
}

// figure returns the figure of a system.
func (x row) figure(r *table.Results, impl string) (float64, bool) {
	if !x.worst {
		v, ok := r.Figures[x.name(impl)][x.unit]
		return v, ok
	}
	sum, ok := 0.0, false
	for unit := range strings.SplitSeq(x.unit, "+") {
		if turns := r.Turns[x.name(impl)][unit]; len(turns) > 0 {
			sum, ok = sum+slices.Max(turns), true
		}
	}
	return sum, ok
}

// ratio returns how many times better the store is than another system; NaN if there are no
// turns.
func (x row) ratio(r *table.Results, than string) float64 {
	return perTurn(r.Turns[x.name(store)][x.unit], r.Turns[x.name(than)][x.unit], x.better)
}

// perTurn returns how many times better own figures are than others: the median of the ratios
// of each turn.
func perTurn(own, other []float64, better table.Better) float64 {
	var all []float64
	for i := range min(len(own), len(other)) {
		if better == table.Less {
			all = append(all, other[i]/own[i])
		} else {
			all = append(all, own[i]/other[i])
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	return table.Median(all)
}

// reached says whether all targets are reached; "" if there are none, and a dash if it is
// unknown.
func (x row) reached(r *table.Results) string {
	if len(x.targets) == 0 {
		return ""
	}
	for _, t := range x.targets {
		ratio := x.ratio(r, t.than)
		switch v, _ := x.figure(r, store); {
		case t.than == "" && v > t.least, ratio < t.least:
			return "no"
		case t.than != "" && math.IsNaN(ratio):
			return "–"
		}
	}
	return "yes"
}
