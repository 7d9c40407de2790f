package mysqlengine

import (
	"context"
	"embed"
	"errors"
	"io/fs"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// tables are the migrations of the tables with a prefix.
func tables(prefix string) (*migrate.Set, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return migrate.New(migrate.MySQL, prefix, files)
}

// suits sees that the tables are there, and makes them first if asked to.
func (s *store) suits(ctx context.Context, up bool) error {
	set, err := tables(s.prefix)
	if err != nil {
		return err
	}
	if up {
		if _, err := set.Up(ctx, s.db); err != nil {
			return err
		}
	}
	err = set.Check(ctx, s.db)
	if errors.Is(err, migrate.ErrOld) || errors.Is(err, migrate.ErrNew) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: err.Error()}
	}
	return err
}
