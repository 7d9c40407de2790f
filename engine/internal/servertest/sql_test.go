package servertest_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// dbms is a kind of database.
type dbms struct {
	variable string // that names a server
	start    func(testing.TB, ...servertest.Option) *servertest.SQLServer
	shared   func(testing.TB) string
	open     func(testing.TB, string) *sql.DB

	makeUser, whoIs string
	exists          string // the query for how many databases have a name
}

var all = map[string]dbms{
	"postgres": {
		"TARRY_TEST_POSTGRES_URL",
		func(t testing.TB, opts ...servertest.Option) *servertest.SQLServer {
			return pgtest.Start(t, opts...).SQLServer
		},
		pgtest.Shared,
		func(t testing.TB, url string) *sql.DB {
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() }) // its connections may be cut
			return db
		},
		"CREATE ROLE app LOGIN", "SELECT current_user",
		"SELECT count(*) FROM pg_database WHERE datname = $1",
	},
	"mariadb": {
		"TARRY_TEST_MYSQL_URL", mysqltest.Start, mysqltest.Shared, mysqltest.Open,
		"CREATE USER app", "SELECT SUBSTRING_INDEX(USER(), '@', 1)",
		"SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?",
	},
}

// onAll runs a test on each kind of database.
func onAll(t *testing.T, test func(t *testing.T, d dbms)) {
	for name, d := range all {
		t.Run(name, func(t *testing.T) { test(t, d) })
	}
}

// ask runs a query and returns as a text what is in its one row and column.
func ask(t *testing.T, db *sql.DB, query string, args ...any) (text string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("it is %q, not %q", got, want)
	}
}

func TestSharedDatabase(t *testing.T) {
	onAll(t, func(t *testing.T, d dbms) {
		name := func(raw string) string {
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimPrefix(u.Path, "/")
		}
		host := func(raw string) (host string) {
			servertest.At(t, raw, func(u *url.URL) { host = u.Host })
			return host
		}
		var first string
		t.Run("one", func(t *testing.T) { first = d.shared(t) })
		second := d.shared(t)
		is(t, host(second), host(first))
		is(t, ask(t, d.open(t, second), d.exists, name(first)), "0")

		// What the variable names is used instead, and gets the database.
		s := d.start(t)
		t.Setenv(d.variable, s.URL())
		third := d.shared(t)
		is(t, host(third), s.Addr())
		is(t, s.Text(d.exists, name(third)), "1")

		for range 2 { // databases are apart
			if _, err := d.open(t, s.Database()).ExecContext(t.Context(), "CREATE TABLE k (v VARCHAR(9))"); err != nil {
				t.Fatal(err)
			}
		}
		s.Exec(d.makeUser)
		as := servertest.As(t, s.URL(), "app")
		if d.variable == "TARRY_TEST_MYSQL_URL" { // where each database has its rights
			as = servertest.At(t, as, func(u *url.URL) { u.Path = "/" })
		}
		is(t, ask(t, d.open(t, as), d.whoIs), "app")
	})
}
