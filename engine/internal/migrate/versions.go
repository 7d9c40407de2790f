package migrate

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3/database"

	"github.com/tarryhq/tarry/engine"
)

// versions is the table of the versions, for goose.
//
// Stores that goose brings read times in a way that a *sql.DB for MySQL has to be set up
// for, and write names without quotes.
type versions struct {
	*Set
	progress *progress
}

var _ database.StoreExtender = versions{}

// Tablename implements database.Store.
func (v versions) Tablename() string { return v.dialect.quote(v.store, "migrations") }

// TableExists implements database.StoreExtender.
func (v versions) TableExists(ctx context.Context, db database.DBTxConn) (exists bool, err error) {
	err = db.QueryRowContext(ctx, v.statement(v.dialect.exists)).Scan(&exists)
	return exists, err
}

// CreateVersionTable implements database.Store.
func (v versions) CreateVersionTable(ctx context.Context, db database.DBTxConn) error {
	return v.run(ctx, db, v.dialect.create)
}

// Insert implements database.Store.
func (v versions) Insert(ctx context.Context, db database.DBTxConn, r database.InsertRequest) error {
	if r.Version == 0 {
		return nil // it goes without saying
	}
	return v.run(ctx, db, v.dialect.record, r.Version)
}

// Delete implements database.Store.
func (v versions) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	return v.run(ctx, db, v.dialect.forget, version)
}

func (v versions) run(ctx context.Context, db database.DBTxConn, statement string, args ...any) error {
	statement = v.statement(statement)
	v.progress.begin(statement)
	_, err := db.ExecContext(ctx, statement, args...)
	return err
}

// GetMigration implements database.Store.
func (v versions) GetMigration(ctx context.Context, db database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	all, err := v.applied(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.Version == version {
			return &database.GetMigrationResult{IsApplied: true, Timestamp: a.Applied}, nil
		}
	}
	return nil, fmt.Errorf("%w: %d", database.ErrVersionNotFound, version)
}

// GetLatestVersion implements database.Store.
func (v versions) GetLatestVersion(ctx context.Context, db database.DBTxConn) (int64, error) {
	all, err := v.ListMigrations(ctx, db)
	if err != nil {
		return 0, err
	}
	return all[0].Version, nil
}

// ListMigrations implements database.Store.
func (v versions) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	all, err := v.applied(ctx, db)
	if err != nil {
		return nil, err
	}
	var list []*database.ListMigrationsResult
	for _, a := range append(all, engine.Migration{}) {
		list = append(list, &database.ListMigrationsResult{Version: a.Version, IsApplied: true})
	}
	return list, nil
}
