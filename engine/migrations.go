package engine

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Migrations are the schema migrations of a store in a database. They may need more rights
// there than opening the store does.
type Migrations interface {
	// Up applies the missing migrations, and creates the store if there is none. It returns
	// the versions applied, even with an error. Concurrent calls wait for each other, across
	// processes.
	Up(ctx context.Context) (done []int64, err error)

	// Down reverts the migrations after a version, the latest first, and deletes the messages
	// in their tables. It returns the versions reverted, even with an error. Version 0 leaves
	// only the version table.
	Down(ctx context.Context, to int64) (done []int64, err error)

	// Status returns all versions in order, applied or not. It writes nothing.
	Status(ctx context.Context) ([]Migration, error)

	// Print returns the SQL that brings a store from a version to the latest, with
	// everything that Up does. It does not use the database. Version 0 means no store.
	Print(from int64) string

	Close()
}

// Migration is one version of a store's tables.
type Migration struct {
	Version int64
	File    string    // "" if this program does not have it
	Applied time.Time // in seconds, by the database's clock; zero: not applied
}

// MigrationsOpener returns the migrations of the store that u names. The store need not
// exist or be reachable yet.
type MigrationsOpener func(u *url.URL) (Migrations, error)

// RegisterMigrations makes the migrations of an engine available to OpenMigrations, in
// addition to Register.
func RegisterMigrations(scheme string, open MigrationsOpener) {
	migrations.Register("migrations", scheme, open)
}

// OpenMigrations returns the migrations of the store that a URL names. It fails with
// ErrUnsupported for an engine that has none.
func OpenMigrations(rawURL string) (Migrations, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if open, ok := migrations.Of(u.Scheme); ok {
		return open(u)
	}
	if _, known := openers.Of(u.Scheme); known {
		return nil, &Error{Op: "migrate", Err: ErrUnsupported, Hint: fmt.Sprintf("a %s: store has no tables to migrate", u.Scheme)}
	}
	return nil, unknown(u.Scheme)
}
