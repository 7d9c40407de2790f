package sqlengine

import "github.com/tarryhq/tarry/engine/internal/figure"

// Connections counts the use of a store's connections. The zero value is ready.
type Connections struct {
	Trips figure.Times // to the server
	Waits figure.Times // for a connection
}

// Pool is the state of a pool of connections.
type Pool struct {
	InUse, Idle, Most int   // Most 0: any number
	Waits             int64 // how many calls found no free connection
}

// Measure adds the figures of connections and of their pool.
func (c *Connections) Measure(l *figure.List, p Pool) {
	l.Times("round_trip_seconds", "How long round trips to the server took.", &c.Trips)
	l.Times("pool_wait_seconds", "How long transactions waited for a connection of the pool.", &c.Waits)
	l.GaugeBy("connections", "Connections of the pool.", "state",
		figure.By{Label: "in_use", Value: float64(p.InUse)},
		figure.By{Label: "idle", Value: float64(p.Idle)})
	l.Gauge("connections_limit", "Connections that the pool may have; 0: any number.", float64(p.Most))
	l.Total("pool_waits", "Times that no connection of the pool was free.", float64(p.Waits))
}
