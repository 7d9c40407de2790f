// Package figure helps engines to measure themselves: it has histograms of durations, and
// builds the list of figures that engine.Measurer returns.
package figure

import "github.com/tarryhq/tarry/engine"

// List collects figures. Each method adds one.
type List struct {
	engine  string
	figures []engine.Figure
}

// Of returns an empty list. Each figure's name will begin with the engine's name and _.
func Of(name string) *List { return &List{engine: name} }

// By is the reading of a figure for one value of its label.
type By struct {
	Label string
	Value float64
}

func (l *List) add(f engine.Figure) {
	f.Name = l.engine + "_" + f.Name
	l.figures = append(l.figures, f)
}

// Total adds a counter that only grows.
func (l *List) Total(name, help string, value float64) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.TotalFigure, Readings: []engine.Reading{{Value: value}}})
}

// TotalBy adds a counter with a label.
func (l *List) TotalBy(name, help, label string, by ...By) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.TotalFigure, Label: label, Readings: readings(by)})
}

// Gauge adds a value that goes up and down.
func (l *List) Gauge(name, help string, value float64) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.GaugeFigure, Readings: []engine.Reading{{Value: value}}})
}

// GaugeBy adds a gauge with a label.
func (l *List) GaugeBy(name, help, label string, by ...By) {
	l.add(engine.Figure{Name: name, Help: help, Kind: engine.GaugeFigure, Label: label, Readings: readings(by)})
}

// Flag adds a gauge that is 1 for true and 0 for false.
func (l *List) Flag(name, help string, on bool) {
	value := 0.0
	if on {
		value = 1
	}
	l.Gauge(name, help, value)
}

// Times adds a histogram of durations.
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
