package mysqlengine

import (
	"context"
	"database/sql"
	"time"

	"github.com/tarryhq/tarry/engine/internal/figure"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// conn takes a connection of the pool.
func (s *store) conn(ctx context.Context) (*sql.Conn, error) {
	defer s.connections.Waits.Since(time.Now())
	return s.db.Conn(ctx)
}

// Measure implements sqlengine.Store.
func (s *store) Measure(l *figure.List) {
	p := s.db.Stats()
	s.connections.Measure(l, sqlengine.Pool{InUse: p.InUse, Idle: p.Idle, Most: p.MaxOpenConnections, Waits: p.WaitCount})
}
