package migrate

import (
	"context"
	"database/sql"

	"github.com/tarryhq/tarry/engine"
)

// store is a Set with its database.
type store struct {
	set    *Set
	db     *sql.DB
	fault  func(ctx context.Context, err error) error
	hangUp func()
}

// NewStore returns the migrations of a store. fault converts errors to those of an engine,
// and hangUp closes db and everything else that must be closed.
func NewStore(set *Set, db *sql.DB, fault func(ctx context.Context, err error) error, hangUp func()) engine.Migrations {
	return &store{set, db, fault, hangUp}
}

// Up implements engine.Migrations.
func (s *store) Up(ctx context.Context) ([]int64, error) {
	done, err := s.set.Up(ctx, s.db)
	return done, s.fault(ctx, err)
}

// Down implements engine.Migrations.
func (s *store) Down(ctx context.Context, to int64) ([]int64, error) {
	done, err := s.set.Down(ctx, s.db, to)
	return done, s.fault(ctx, err)
}

// Status implements engine.Migrations.
func (s *store) Status(ctx context.Context) ([]engine.Migration, error) {
	all, err := s.set.Status(ctx, s.db)
	return all, s.fault(ctx, err)
}

// Print implements engine.Migrations.
func (s *store) Print(from int64) string { return s.set.Print(from) }

// Close implements engine.Migrations.
func (s *store) Close() { s.hangUp() }
