package pgengine

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/url"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/migrate"
)

//go:embed migrations/*.sql
var files embed.FS

// migrationsOf returns the migrations of the store in a schema.
func migrationsOf(schema string) (*migrate.Set, error) {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		return nil, err
	}
	return migrate.New(migrate.Postgres, schema, sub)
}

// Migrate creates the tables in a schema ("": DefaultSchema), or updates them to the version
// that this package needs. Concurrent calls wait for each other. The pool must connect to the
// server itself, or to a PgBouncer in session mode. Its user needs the right to create the
// missing schema and tables.
func Migrate(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	set, err := migrationsOf(orDefault(schema))
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	_, err = set.Up(ctx, db)
	return migrationFault(ctx, err)
}

// check returns an error if the tables of a schema have another version.
func check(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	set, err := migrationsOf(schema)
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	return migrationFault(ctx, set.Check(ctx, db))
}

// openMigrations returns the migrations of the store at a URL: see Open.
func openMigrations(u *url.URL) (engine.Migrations, error) {
	to, err := parse(u)
	if err != nil {
		return nil, err
	}
	set, err := migrationsOf(orDefault(to.cfg.Schema))
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*to.pool.ConnConfig)
	return migrate.NewStore(set, db, migrationFault, func() { _ = db.Close() }), nil
}

// migrationFault returns the error of a migration, or of a store that lacks migrations.
func migrationFault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, migrate.ErrOld), errors.Is(err, migrate.ErrNew):
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: err.Error()}
	}
	known := fault(ctx, "migrate", err, false)
	var pg *pgconn.PgError
	if e, ok := known.(*engine.Error); ok && errors.As(err, &pg) { // the error says which statement failed
		e.Hint = oneLine(err)
		if m := meanings[pg.Code]; m.hint != "" {
			e.Hint += "; " + m.hint
		}
	}
	return known
}
