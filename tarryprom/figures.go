package tarryprom

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry/engine"
)

// collectFigures exports the figures of the watched engine. One that has a name of another
// metric, or is malformed, is left out here or by the registry.
func (m *Metrics) collectFigures(ch chan<- prometheus.Metric) {
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
	for _, f := range measurer.Figures() {
		name := "tarry_" + f.Name
		if f.Kind == engine.TotalFigure {
			name += "_total"
		}
		var labels []string
		if f.Label != "" {
			labels = []string{f.Label}
		}
		d := prometheus.NewDesc(name, f.Help, labels, nil)
		for i := range f.Readings {
			if x, err := reading(d, &f, &f.Readings[i]); err == nil {
				ch <- x
			}
		}
	}
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
