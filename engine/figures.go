package engine

// Measurer is an engine that measures itself, for those who run it.
type Measurer interface {
	// Figures returns what the engine has measured since it was opened, from memory and at
	// once: it waits neither for what is behind the engine nor for calls under way. It may
	// be called by many goroutines, and after Close, when it tells what stood last. An
	// engine tells the same figures each time, with the same values of their labels.
	Figures() []Figure
}

// Figure is a quantity that an engine measures, with a reading for each value of its label.
type Figure struct {
	// Name says what is measured and ends in its unit, seconds or bytes, if it has one: a-z
	// and _, such as disk_sync_seconds. It begins with the name of the engine.
	Name     string
	Help     string // one sentence
	Kind     FigureKind
	Label    string // what tells the readings apart, such as "cause"; "": there is one
	Readings []Reading
}

// Reading is a value of a Figure.
type Reading struct {
	Label string        // value of the Figure's label
	Value float64       // of a Counter or Gauge; time is in seconds
	Times *Distribution // of a Histogram
}

// Distribution says how many values were how great. The counts are those up to and with each
// bound, but for those up to the one before; the last one, which has no bound, is of what is
// greater than all.
type Distribution struct {
	Bounds []float64 // ascending; not to be changed
	Counts []uint64  // one more than Bounds
	Sum    float64   // of the values
}

// FigureKind says what values a Figure has.
type FigureKind uint8

// The kinds of figures.
const (
	TotalFigure     FigureKind = iota // has only ever been added to
	GaugeFigure                       // goes up and down
	HistogramFigure                   // how the values were distributed
)
