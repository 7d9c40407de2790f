package mysqlengine

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// tables returns the migrations of the tables with a prefix.
func tables(prefix string) (*migrate.Set, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return migrate.New(migrate.MySQL, prefix, files)
}

// openMigrations returns the migrations of the store at a URL: see Open.
func openMigrations(u *url.URL) (engine.Migrations, error) {
	driver, _, cfg, err := parse(u)
	if err != nil {
		return nil, err
	}
	set, err := tables(cfg.prefix())
	if err != nil {
		return nil, err
	}
	c, err := mysql.NewConnector(driver)
	if err != nil {
		return nil, &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: err.Error()}
	}
	db := sql.OpenDB(c)
	return migrate.NewStore(set, db, migrationFault, func() { _ = db.Close() }), nil
}

// migrationFault returns the error of a migration, or of a store that lacks migrations.
func migrationFault(ctx context.Context, err error) error {
	if errors.Is(err, migrate.ErrOld) || errors.Is(err, migrate.ErrNew) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: err.Error()}
	}
	known := fault(ctx, "migrate", err, false)
	if e, ok := known.(*engine.Error); ok && ctx.Err() == nil {
		advice, _, known := strings.Cut(e.Hint, "; the database says")
		if e.Hint = err.Error(); known { // err says which statement failed
			e.Hint = advice + "; " + e.Hint
		}
	}
	return known
}

// suits checks the version of the tables, and migrates them first if up is set.
func (s *store) suits(ctx context.Context, set *migrate.Set, up bool) error {
	if up {
		if _, err := set.Up(ctx, s.db); err != nil {
			return migrationFault(ctx, err)
		}
	}
	if err := set.Check(ctx, s.db); err != nil {
		return migrationFault(ctx, err)
	}
	return s.writable(ctx)
}

// writable checks that the server accepts writes, by an update that changes nothing. Whether
// read_only affects a user depends on rights that differ between MySQL and MariaDB.
func (s *store) writable(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.sql.same)
	if readOnly(err) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: hintReadOnly}
	}
	return nil // a user may have the right to read only
}
