// Package plot draws line charts as SVG, for a light and a dark page alike.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Chart has lines over one x and one y axis.
type Chart struct {
	Title string
	X, Y  Axis
	Lines []Line
}

// Axis maps values to places. Both ends come from the ticks.
type Axis struct {
	Title string
	Log   bool
	Ticks []Tick // in ascending order, at least two
}

// Tick is a value with a text.
type Tick struct {
	Value float64
	Text  string
}

// Line is a line through points. Marked lines have a dot at each.
type Line struct {
	Name   string
	Color  int // a color and a dash of its own
	Points []Point
	Marked bool
}

// Point is a place in a chart.
type Point struct{ X, Y float64 }

// Sizes in pixels.
const (
	width, height            = 460, 330 // of a chart
	left, right, top, bottom = 58, 22, 68, 44
	legend                   = 18 // height of a line of the legend
)

// Colors is how many lines can be told apart.
const Colors = 5

const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 14px; font-weight: 600 }
.page { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
.c0 { stroke: #0b63ce } .d0 { fill: #0b63ce }
.c1 { stroke: #c2410c; stroke-dasharray: 7 3 } .d1 { fill: #c2410c }
.c2 { stroke: #15803d; stroke-dasharray: 2 3 } .d2 { fill: #15803d }
.c3 { stroke: #7e22ce; stroke-dasharray: 10 3 2 3 } .d3 { fill: #7e22ce }
.c4 { stroke: #8a6100; stroke-dasharray: 4 2 } .d4 { fill: #8a6100 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .page { fill: #0d1117 }
  .grid { stroke: #373e47 }
  .c0 { stroke: #6cb2ff } .d0 { fill: #6cb2ff }
  .c1 { stroke: #fb923c } .d1 { fill: #fb923c }
  .c2 { stroke: #4ade80 } .d2 { fill: #4ade80 }
  .c3 { stroke: #d8b4fe } .d3 { fill: #d8b4fe }
  .c4 { stroke: #facc15 } .d4 { fill: #facc15 }
}
</style>
`

// Write writes charts beside one another, so many in a row. about describes them to those who
// do not see them.
func Write(w io.Writer, charts []Chart, columns int, about string) error {
	rows := (len(charts) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img">`+"\n", columns*width, rows*height)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", html.EscapeString(about), style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", columns*width, rows*height)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%columns*width, i/columns*height)
		c.write(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Chart) write(b *strings.Builder) {
	fmt.Fprintf(b, `<text class="title" x="%d" y="20">%s</text>`+"\n", left, html.EscapeString(c.Title))
	c.legend(b)
	for _, t := range c.X.Ticks {
		x := c.x(t.Value)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1[1]f" y2="%[3]d"/>`, x, top, height-bottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x, height-bottom+16, html.EscapeString(t.Text))
	}
	for _, t := range c.Y.Ticks {
		y := c.y(t.Value)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1[2]f"/>`, left, y, width-right)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, y+4, html.EscapeString(t.Text))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-bottom+34, html.EscapeString(c.X.Title))
	fmt.Fprintf(b, `<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(c.Y.Title))
	for _, l := range c.Lines {
		c.line(b, l)
	}
}

// legend has the names of the lines, in as many rows as they need.
func (c Chart) legend(b *strings.Builder) {
	const sample, letter = 26, 6.6
	x, y := float64(left), 38
	for _, l := range c.Lines {
		wide := sample + letter*float64(len(l.Name)) + 14
		if x+wide > width && x > left {
			x, y = left, y+legend
		}
		fmt.Fprintf(b, `<line class="line c%d" x1="%.1f" y1="%d" x2="%.1f" y2="%[3]d"/>`, l.Color%Colors, x, y-4, x+sample-5)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", x+sample, y, html.EscapeString(l.Name))
		x += wide
	}
}

func (c Chart) line(b *strings.Builder, l Line) {
	var path strings.Builder
	for i, p := range l.Points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], c.x(p.X), c.y(p.Y))
	}
	fmt.Fprintf(b, `<path class="line c%d" d="%s"/>`+"\n", l.Color%Colors, &path)
	if !l.Marked {
		return
	}
	for _, p := range l.Points {
		fmt.Fprintf(b, `<circle class="d%d" cx="%.1f" cy="%.1f" r="3"/>`, l.Color%Colors, c.x(p.X), c.y(p.Y))
	}
	b.WriteString("\n")
}

func (c Chart) x(v float64) float64 { return left + c.X.share(v)*(width-left-right) }

func (c Chart) y(v float64) float64 { return height - bottom - c.Y.share(v)*(height-top-bottom) }

// share is how far a value is from the lower end, from 0 to 1. What lies outside is at an end.
func (a Axis) share(v float64) float64 {
	from, to := a.Ticks[0].Value, a.Ticks[len(a.Ticks)-1].Value
	if a.Log {
		v, from, to = math.Log(max(v, from)), math.Log(from), math.Log(to)
	}
	return min(max((v-from)/(to-from), 0), 1)
}

// Decades returns ticks for a logarithmic axis that has all values: a power of ten each.
func Decades(values []float64, text func(v float64) string) (ticks []Tick) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	if least > most {
		least, most = 1, 10
	}
	from, to := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	for e := from; e <= max(to, from+1); e++ {
		ticks = append(ticks, Tick{math.Pow(10, e), text(math.Pow(10, e))})
	}
	return ticks
}

// Steps returns about five ticks for a linear axis from zero that has all values.
func Steps(values []float64, text func(v float64) string) (ticks []Tick) {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	if most == 0 {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, times := range []float64{2, 2.5, 2} { // 2, 5 and 10 in all
		if most/step > 5 {
			step *= times
		}
	}
	for v := 0.0; ; v += step {
		ticks = append(ticks, Tick{v, text(v)})
		if v >= most {
			return ticks
		}
	}
}
