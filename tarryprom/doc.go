// Package tarryprom measures a client of tarry, its workers and a server on it, for
// Prometheus.
//
//	m := tarryprom.New(nil)
//	c, err := tarry.Open(ctx, "disk:tarry-data", &tarry.Config{Meter: m.Meter()})
//	…
//	m.Watch(c)
//	http.Handle("/metrics", m.Handler())
//
// Metrics is a prometheus.Collector as well, for a registry that is there already. The
// page docs/metrics.md lists what it tells.
package tarryprom
