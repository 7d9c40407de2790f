package table

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Comparison is a table that compares other systems with tarry's on the same work. Its
// benchmarks are named Scenario/impl=SYSTEM, or Scenario/impl=SYSTEM/PARAM=VALUE.
type Comparison struct {
	Field, Own []System
	Rows       []Row
}

// System is a column. For tarry's own there is one more, with the ratio.
type System struct{ Impl, Title, Ratio string }

// Row is a line for each parameter that has a figure.
type Row struct {
	// Scenario and Unit select a figure, or a sum such as "early+lost".
	Scenario, Unit string
	// Text describes it; %s in it stands for the parameter.
	Text   string
	Better Better
}

// Better says whether more or less is better.
type Better int

const (
	Neither Better = iota
	More
	Less
)

// Write writes the table. A ratio says how many times better tarry is than the best of the
// field.
func (c *Comparison) Write(w io.Writer, r *Results) {
	titles, rules := "| |", "|---|"
	for _, s := range c.systems() {
		titles, rules = titles+" "+s.Title+" |", rules+"---:|"
	}
	for _, s := range c.Own {
		titles, rules = titles+" "+s.Ratio+" |", rules+"---:|"
	}
	fmt.Fprintln(w, titles+"\n"+rules)
	for _, row := range c.Rows {
		params := paramsOf(r, row.Scenario)
		for _, param := range params {
			text := row.Text
			if param != "" {
				text = fmt.Sprintf(text, words(param))
			}
			if v := c.figures(r, row, param); slices.Max(v) != missing {
				c.line(w, text, v, row.Better)
			}
		}
	}
}

func (c *Comparison) systems() []System { return slices.Concat(c.Field, c.Own) }

func (c *Comparison) line(w io.Writer, text string, v []float64, better Better) {
	cells := []string{text}
	for _, f := range v {
		cells = append(cells, Number(f))
	}
	field, own := v[:len(c.Field)], v[len(c.Field):]
	for _, f := range own {
		cells = append(cells, ratio(f, field, better))
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
	for _, s := range c.systems() {
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

func ratio(v float64, field []float64, better Better) string {
	field = slices.DeleteFunc(slices.Clone(field), func(f float64) bool { return f == missing })
	switch {
	case better == Neither:
		return ""
	case len(field) == 0:
		return Number(missing)
	case better == More:
		return Number(divide(v, slices.Max(field)))
	default:
		return Number(divide(slices.Min(field), v))
	}
}

func divide(a, b float64) float64 {
	if a < 0 || b <= 0 {
		return missing
	}
	return a / b
}

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
