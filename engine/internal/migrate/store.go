package migrate

import (
	"context"
	"database/sql"

	"github.com/tarryhq/tarry/engine"
)

// Store is a Set with the database of its store.
type Store struct {
	set    *Set
	db     *sql.DB
	fault  func(ctx context.Context, err error) error
	hangUp func()
}

var _ engine.Migrations = (*Store)(nil)

// NewStore returns the migrations of a store. fault converts errors to those of an engine,
// and hangUp closes db and everything else that must be closed.
func NewStore(set *Set, db *sql.DB, fault func(ctx context.Context, err error) error, hangUp func()) *Store {
	return &Store{set, db, fault, hangUp}
}

// Up implements engine.Migrations.
func (s *Store) Up(ctx context.Context) ([]int64, error) {
	done, err := s.set.Up(ctx, s.db)
	return done, s.fault(ctx, err)
}

// Down implements engine.Migrations.
func (s *Store) Down(ctx context.Context, to int64) ([]int64, error) {
	done, err := s.set.Down(ctx, s.db, to)
	return done, s.fault(ctx, err)
}

// Status implements engine.Migrations.
func (s *Store) Status(ctx context.Context) ([]engine.Migration, error) {
	all, err := s.set.Status(ctx, s.db)
	return all, s.fault(ctx, err)
}

// Print implements engine.Migrations.
func (s *Store) Print(from int64) string { return s.set.Print(from) }

// Close implements engine.Migrations.
func (s *Store) Close() { s.hangUp() }
