package engine

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// Migrations bring a store that lies in tables of a database from version to version. Who
// calls them may need more rights there than who opens the store.
type Migrations interface {
	// Up applies what the store lacks, and makes one where there is none. It returns the
	// versions applied, also beside an error. Several may do so at once: one works while
	// the others wait.
	Up(ctx context.Context) (done []int64, err error)

	// Down takes back what came after a version, the latest first, with the messages in
	// it, and returns the versions taken back, also beside an error. Version 0 leaves only
	// the table of the versions.
	Down(ctx context.Context, to int64) (done []int64, err error)

	// Status returns all versions in order, whether applied or not. It writes nothing.
	Status(ctx context.Context) ([]Migration, error)

	// Print returns the SQL that brings a store from a version to the latest, with all that
	// Up does. It asks no database. Version 0 is no store.
	Print(from int64) string

	Close()
}

// Migration is one version of a store's tables.
type Migration struct {
	Version int64
	File    string    // "" for one that the program does not have
	Applied time.Time // in seconds, by the clock of the database; zero: it is not
}

// MigrationsOpener returns the migrations of the store that u names, which need not be
// there or be reachable yet.
type MigrationsOpener func(u *url.URL) (Migrations, error)

// RegisterMigrations makes the migrations of an engine available to OpenMigrations, beside
// Register.
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
