package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Errors of Check, Up and Down about a store's version.
var (
	// ErrOld means that a store lacks migrations.
	ErrOld = errors.New("the store is too old")

	// ErrNew means that a store has migrations that the program does not know.
	ErrNew = errors.New("the store is too new")
)

// Status returns all versions in order, whether applied or not. It writes nothing.
func (s *Set) Status(ctx context.Context, db *sql.DB) ([]engine.Migration, error) {
	applied, err := s.applied(ctx, db)
	if err != nil {
		return nil, err
	}
	var all []engine.Migration
	for i, m := range s.all {
		all = append(all, engine.Migration{Version: int64(i + 1), File: m.file})
	}
	for _, a := range applied {
		for int64(len(all)) < a.Version {
			all = append(all, engine.Migration{Version: int64(len(all) + 1)})
		}
		all[a.Version-1].Applied = a.Applied
	}
	return all, nil
}

// Version returns the last applied version; 0: none. It writes nothing.
func (s *Set) Version(ctx context.Context, db querier) (int64, error) {
	applied, err := s.applied(ctx, db)
	if err != nil || len(applied) == 0 {
		return 0, err
	}
	return applied[0].Version, nil
}

// Check returns an error that wraps ErrOld or ErrNew unless the store is at the latest
// version. It writes nothing and reads only the table of versions.
func (s *Set) Check(ctx context.Context, db *sql.DB) error {
	version, err := s.Version(ctx, db)
	switch {
	case err != nil:
		return err
	case version == 0:
		return fmt.Errorf("%w: there is no store %s; %s", ErrOld, s.store, migrateAdvice)
	case version < s.Latest():
		return fmt.Errorf("%w: %s is at version %d, and this program needs %d; %s", ErrOld, s.store, version, s.Latest(), migrateAdvice)
	}
	return s.checkKnown(version)
}

const migrateAdvice = "run tarry migrate up --store URL, or open it with the option migrate=true"

// checkKnown returns an error for a version that this program does not know.
func (s *Set) checkKnown(version int64) error {
	if version <= s.Latest() {
		return nil
	}
	return fmt.Errorf("%w: %s is at version %d, and this program knows up to %d; use a newer tarry, or run tarry migrate down with the one that is at %d",
		ErrNew, s.store, version, s.Latest(), version)
}

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// applied returns the applied versions of a store, the latest first.
func (s *Set) applied(ctx context.Context, db querier) ([]engine.Migration, error) {
	var exists bool
	err := db.QueryRowContext(ctx, s.names.Replace(s.dialect.exists)).Scan(&exists)
	if err != nil || !exists {
		return nil, s.versionError(err)
	}
	rows, err := db.QueryContext(ctx, s.names.Replace(s.dialect.list))
	if err != nil {
		return nil, s.versionError(err)
	}
	defer rows.Close()
	var all []engine.Migration
	for rows.Next() {
		var a engine.Migration
		var seconds int64
		if err := rows.Scan(&a.Version, &seconds); err != nil {
			return nil, s.versionError(err)
		}
		a.Applied = time.Unix(seconds, 0)
		all = append(all, a)
	}
	return all, s.versionError(rows.Err())
}

func (s *Set) versionError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the version of the store %s: %w", s.store, err)
}
