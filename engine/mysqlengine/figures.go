package mysqlengine

import (
	"context"
	"database/sql"
	"time"

	"github.com/tarryhq/tarry/engine/internal/figure"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// measured is what a store counts of its connections.
type measured struct {
	trips figure.Times // to the server
	waits figure.Times // for a connection
}

// conn takes a connection of the pool.
func (s *store) conn(ctx context.Context) (*sql.Conn, error) {
	defer s.measured.waits.Since(time.Now())
	return s.db.Conn(ctx)
}

var _ sqlengine.Measurer = (*store)(nil)

// Measure implements sqlengine.Measurer.
func (s *store) Measure(l *figure.List) {
	p := s.db.Stats()
	l.Times("round_trip_seconds", "How long answers of the server took.", &s.measured.trips)
	l.Times("pool_wait_seconds", "How long a connection of the pool was waited for.", &s.measured.waits)
	l.GaugeBy("connections", "Connections of the pool.", "state",
		figure.By{Label: "in_use", Value: float64(p.InUse)},
		figure.By{Label: "idle", Value: float64(p.Idle)})
	l.Gauge("connections_limit", "Connections that the pool may have; 0: any number.", float64(p.MaxOpenConnections))
	l.Total("pool_waits", "Times that no connection of the pool was free.", float64(p.WaitCount))
}
