package table

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Comparison is a table that compares systems on the same work. Its benchmarks are named
// Scenario/impl=SYSTEM, or Scenario/impl=SYSTEM/PARAM=VALUE.
type Comparison struct {
	Systems []System
	Rows    []Row
}

// System is a column.
type System struct{ Impl, Title string }

// Row is a line for each parameter that has a figure.
type Row struct {
	// Scenario and Unit select a figure, or a sum such as "early+lost".
	Scenario, Unit string
	// Text describes it; %s in it stands for the parameter.
	Text string
}

// Write writes the table.
func (c *Comparison) Write(w io.Writer, r *Results) {
	titles, rules := "| |", "|---|"
	for _, s := range c.Systems {
		titles, rules = titles+" "+s.Title+" |", rules+"---:|"
	}
	fmt.Fprintln(w, titles+"\n"+rules)
	for _, row := range c.Rows {
		for _, param := range paramsOf(r, row.Scenario) {
			text := row.Text
			if param != "" {
				text = fmt.Sprintf(text, words(param))
			}
			if v := c.figures(r, row, param); slices.Max(v) != missing {
				writeLine(w, text, v)
			}
		}
	}
}

func writeLine(w io.Writer, text string, figures []float64) {
	cells := []string{text}
	for _, f := range figures {
		cells = append(cells, Number(f))
	}
	fmt.Fprintln(w, "|", strings.Join(cells, " | "), "|")
}

// paramsOf returns the parameters of a scenario, such as "clients=8" and "clients=64"; "" if
// it was measured in only one way.
func paramsOf(r *Results, scenario string) (params []string) {
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

// figures returns the figures of all systems.
func (c *Comparison) figures(r *Results, row Row, param string) (v []float64) {
	for _, s := range c.Systems {
		name := row.Scenario + "/impl=" + s.Impl
		if param != "" {
			name += "/" + param
		}
		f, ok := r.Sum(name, row.Unit)
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
		value = Number(f)
	}
	return value + " " + name
}

// Better says whether more or less is better.
type Better int

const (
	Neither Better = iota
	More
	Less
)

// Number formats a number with three digits, or as a whole number with commas.
func Number(f float64) string {
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
