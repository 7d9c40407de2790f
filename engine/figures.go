package engine

// Measurer is an engine with metrics of its own.
type Measurer interface {
	// Figures returns what the engine has measured since it was opened. It answers at once
	// from memory, without waiting for the store or for calls under way. It is safe for
	// concurrent use; after Close it returns the last values. An engine returns the same
	// figures with the same label values each time.
	Figures() []Figure
}

// Figure is a metric of an engine, with a reading for each value of its label.
type Figure struct {
	// Name is the engine's name, what is measured, and the unit if there is one, seconds or
	// bytes: a-z and _, such as disk_sync_seconds.
	Name     string
	Help     string // one sentence
	Kind     FigureKind
	Label    string // name of the label, such as "cause"; "": there is one reading
	Readings []Reading
}

// Reading is a value of a Figure.
type Reading struct {
	Label string        // value of the Figure's label
	Value float64       // of a TotalFigure or GaugeFigure; time is in seconds
	Times *Distribution // of a HistogramFigure
}

// Distribution is a histogram. Each count is of values above the previous bound, up to and
// including its own; the last count is of values above all bounds.
type Distribution struct {
	Bounds []float64 // ascending; not to be changed
	Counts []uint64  // one more than Bounds
	Sum    float64   // of the values
}

// FigureKind is the kind of a Figure.
type FigureKind uint8

// The kinds of figures.
const (
	TotalFigure     FigureKind = iota // a counter, which only grows
	GaugeFigure                       // goes up and down
	HistogramFigure                   // a distribution of values
)
