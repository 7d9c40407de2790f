// Package figure is what engines measure themselves by: counts of how long things took, and
// the list of figures that package engine's Measurer returns.
package figure

import "github.com/tarryhq/tarry/engine"

// List puts figures together. Each method adds one.
type List struct {
	engine  string
	figures []engine.Figure
}

// Of returns an empty list of the figures of an engine, with whose name theirs begin.
func Of(name string) *List { return &List{engine: name} }

// By is a value of a figure that has a label.
type By struct {
	Label string
	Value float64
}

func (l *List) add(f engine.Figure) {
	f.Name = l.engine + "_" + f.Name
	l.figures = append(l.figures, f)
}

// Total adds what has only ever been added to.
func (l *List) Total(name, help string, value float64) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.TotalFigure, Readings: []engine.Reading{{Value: value}}})
}

// TotalBy adds the same by label.
func (l *List) TotalBy(name, help, label string, by ...By) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.TotalFigure, Label: label, Readings: readings(by)})
}

// Gauge adds what goes up and down.
func (l *List) Gauge(name, help string, value float64) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.GaugeFigure, Readings: []engine.Reading{{Value: value}}})
}

// GaugeBy adds the same by label.
func (l *List) GaugeBy(name, help, label string, by ...By) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.GaugeFigure, Label: label, Readings: readings(by)})
}

// Flag adds what is so, 1, or not, 0.
func (l *List) Flag(name, help string, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	l.Gauge(name, help, value)
}

// Times adds how long things took.
func (l *List) Times(name, help string, t *Times) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.HistogramFigure, Readings: []engine.Reading{{Times: t.distribution()}}})
}

// All returns the figures.
func (l *List) All() []engine.Figure { return l.figures }

func readings(by []By) []engine.Reading {
	out := make([]engine.Reading, len(by))
	for i, b := range by {
		out[i] = engine.Reading{Label: b.Label, Value: b.Value}
	}
	return out
}
