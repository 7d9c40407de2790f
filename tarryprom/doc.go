// Package tarryprom provides metrics for Prometheus of a tarry client, its workers and a
// server on it.
//
//	m := tarryprom.New(nil)
//	c, err := tarry.Open(ctx, "disk:tarry-data", &tarry.Config{Meter: m.Meter()})
//	…
//	m.Watch(c)
//	http.Handle("/metrics", m.Handler())
//
// Metrics is also a prometheus.Collector, for an existing registry. The metrics are listed
// in docs/metrics.md.
package tarryprom
