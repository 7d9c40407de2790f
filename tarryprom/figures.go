package tarryprom

import (
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry/engine"
)

// Limits of an engine's figures. A figure that exceeds them or is malformed is left out, so
// that the rest of the scrape still succeeds.
const (
	maxFigures  = 100
	maxReadings = 50 // per figure
)

var (
	figureName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)+$`)
	labelName  = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
)

// collectFigures exports the figures of the watched engine.
func (m *Metrics) collectFigures(ch chan<- prometheus.Metric) {
	m.figures(func(d *prometheus.Desc, f *engine.Figure) {
		seen := make(map[string]bool)
		for i, r := range f.Readings {
			if i >= maxReadings || seen[r.Label] || !utf8.ValidString(r.Label) {
				continue
			}
			seen[r.Label] = true
			if x, err := reading(d, f, &r); err == nil {
				ch <- x
			}
		}
	})
}

// describeFigures describes them if a client is watched already.
func (m *Metrics) describeFigures(ch chan<- *prometheus.Desc) {
	m.figures(func(d *prometheus.Desc, _ *engine.Figure) { ch <- d })
}

// figures calls fn for each figure.
func (m *Metrics) figures(fn func(d *prometheus.Desc, f *engine.Figure)) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return
	}
	measurer, ok := client.Engine().(engine.Measurer)
	if !ok {
		return
	}
	seen := make(map[string]bool)
	for i, f := range measurer.Figures() {
		if i == maxFigures {
			return
		}
		name := "tarry_" + f.Name
		if f.Kind == engine.TotalFigure {
			name += "_total"
		}
		taken := !figureName.MatchString(f.Name) || f.Label != "" && !labelName.MatchString(f.Label)
		for _, n := range spoken(name) {
			taken = taken || seen[n] || m.own[n]
			seen[n] = true
		}
		if taken {
			continue
		}
		var labels []string
		if f.Label != "" {
			labels = []string{f.Label}
		}
		fn(prometheus.NewDesc(name, f.Help, labels, nil), &f)
	}
}

// spoken returns the names under which a metric may be exported.
func spoken(name string) [4]string {
	return [4]string{name, name + "_bucket", name + "_count", name + "_sum"}
}

// ownNames returns the names of this package's metrics.
func (m *Metrics) ownNames() map[string]bool {
	own, descs := make(map[string]bool), make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		m.describeOwn(descs)
	}()
	for d := range descs {
		var name string
		if _, err := fmt.Sscanf(d.String(), "Desc{fqName: %q,", &name); err != nil {
			continue // the library has changed its format; a test checks this
		}
		for _, n := range spoken(name) {
			own[n] = true
		}
	}
	return own
}

func reading(d *prometheus.Desc, f *engine.Figure, r *engine.Reading) (prometheus.Metric, error) {
	var labels []string
	if f.Label != "" {
		labels = []string{r.Label}
	}
	switch f.Kind {
	case engine.TotalFigure:
		return prometheus.NewConstMetric(d, prometheus.CounterValue, r.Value, labels...)
	case engine.HistogramFigure:
		return histogram(d, r.Times, labels)
	}
	return prometheus.NewConstMetric(d, prometheus.GaugeValue, r.Value, labels...)
}

var errDistribution = errors.New("a distribution has one count more than bounds")

func histogram(d *prometheus.Desc, of *engine.Distribution, labels []string) (prometheus.Metric, error) {
	if of == nil || len(of.Counts) != len(of.Bounds)+1 {
		return nil, errDistribution
	}
	buckets, count := make(map[float64]uint64, len(of.Bounds)), uint64(0)
	for i, n := range of.Counts {
		if count += n; i < len(of.Bounds) {
			buckets[of.Bounds[i]] = count
		}
	}
	return prometheus.NewConstHistogram(d, count, of.Sum, buckets, labels...)
}
