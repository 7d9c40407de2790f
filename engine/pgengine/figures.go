package pgengine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/figure"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// acquire takes a connection of the pool.
func (s *store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	defer s.connections.Waits.Since(time.Now())
	return s.pool.Acquire(ctx)
}

// Measure implements sqlengine.Store.
func (s *store) Measure(l *figure.List) {
	p, n := s.pool.Stat(), s.notices
	s.connections.Measure(l, sqlengine.Pool{InUse: int(p.AcquiredConns()), Idle: int(p.IdleConns()), Most: int(p.MaxConns()), Waits: p.EmptyAcquireCount()})
	l.Total("connects", "Connections that the pool has made.", float64(p.NewConnsCount()))
	l.Flag("listening", "Whether notices of other processes are received.", n.listening.Load())
	l.Total("listens", "How often receiving notices began: each time but the first after an interruption.", float64(n.listens.Load()))
}
