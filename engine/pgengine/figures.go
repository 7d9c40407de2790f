package pgengine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/figure"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// measured is what a store counts of its connections.
type measured struct {
	trips figure.Times // to the server
	waits figure.Times // for a connection
}

// acquire takes a connection of the pool.
func (s *store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	defer s.measured.waits.Since(time.Now())
	return s.pool.Acquire(ctx)
}

var _ sqlengine.Measurer = (*store)(nil)

// Measure implements sqlengine.Measurer.
func (s *store) Measure(l *figure.List) {
	p, n := s.pool.Stat(), s.notices
	l.Times("round_trip_seconds", "How long answers of the server took.", &s.measured.trips)
	l.Times("pool_wait_seconds", "How long a connection of the pool was waited for.", &s.measured.waits)
	l.GaugeBy("connections", "Connections of the pool.", "state",
		figure.By{Label: "in_use", Value: float64(p.AcquiredConns())},
		figure.By{Label: "idle", Value: float64(p.IdleConns())})
	l.Gauge("connections_limit", "Connections that the pool may have.", float64(p.MaxConns()))
	l.Total("connects", "Connections that the pool has made.", float64(p.NewConnsCount()))
	l.Total("pool_waits", "Times that no connection of the pool was free.", float64(p.EmptyAcquireCount()))
	l.Flag("listening", "Whether notices of other processes are heard.", n.listening.Load())
	l.Total("listens", "Times that it was begun to hear notices: each but the first after an interruption.", float64(n.listens.Load()))
}
