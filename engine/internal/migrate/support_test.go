package migrate_test

import (
	"database/sql"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/tarryhq/tarry/engine/internal/migrate"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(pgtest.Main(m))
}

// dbms is a database that the tests run on.
type dbms struct {
	name    string
	dialect migrate.Dialect
	shared  func(testing.TB) string
	open    func(testing.TB, string) *sql.DB
	full    func(store, name string) string // the name of a table
	as      func(testing.TB, string, string) string

	// database is an empty one of a server of its own, where users can be made.
	database func(testing.TB) string

	// makeUser and allow are what the superuser says to let a user in, and let it
	// read the store's table of versions.
	makeUser, allow string

	// sleep is a slow statement, sleeper finds the session that runs it, kill ends one.
	sleep, sleeper, kill string
}

func openPostgres(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // nothing is asked any more
	return db
}

var both = []dbms{{
	name: "postgres", dialect: migrate.Postgres, shared: pgtest.Shared, open: openPostgres, as: pgtest.As,
	full:     func(store, name string) string { return store + "." + name },
	database: func(t testing.TB) string { return pgtest.Start(t).Database() },
	makeUser: "CREATE ROLE reader LOGIN",
	allow:    "GRANT USAGE ON SCHEMA tarry TO reader; GRANT SELECT ON tarry.migrations TO reader",
	sleep:    "SELECT pg_sleep(3600)",
	sleeper:  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'SELECT pg_sleep(3600);'",
	kill:     "SELECT pg_terminate_backend(%s)",
}, {
	name: "mysql", dialect: migrate.MySQL, shared: mysqltest.Shared, open: mysqltest.Open, as: mysqltest.As,
	full:     func(store, name string) string { return store + "_" + name },
	database: func(t testing.TB) string { return mysqltest.Start(t).Database() },
	makeUser: "CREATE USER reader",
	allow:    "GRANT SELECT ON tarry_migrations TO reader",
	sleep:    "DO SLEEP(3600)",
	sleeper:  "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'DO SLEEP%'",
	kill:     "KILL %s",
}}

// onBoth runs a test on each database, with an empty one each.
func onBoth(t *testing.T, test func(t *testing.T, d dbms, url string)) {
	t.Parallel()
	for _, d := range both {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d, d.shared(t))
		})
	}
}

// files are the first n migrations for a database.
func (d dbms) files(t *testing.T, n int) fstest.MapFS {
	t.Helper()
	all := os.DirFS("testdata/" + d.name)
	names, err := fs.Glob(all, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	files := make(fstest.MapFS)
	for _, name := range names[:n] {
		text, err := fs.ReadFile(all, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files
}

func (d dbms) set(t *testing.T, store string, files fs.FS) *migrate.Set {
	t.Helper()
	s, err := migrate.New(d.dialect, store, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// has says whether a store has a table.
func (d dbms) has(t *testing.T, db *sql.DB, store, name string) bool {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "SELECT 1 FROM "+d.full(store, name))
	return err == nil
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
