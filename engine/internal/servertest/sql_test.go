package servertest_test

import (
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

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

	limit, limited  string // a setting, and the query for what it is set to
	makeUser, whoIs string
	now, exists     string // queries: seconds since 1970, how many databases of a name
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
		"max_connections = 17", "SHOW max_connections",
		"CREATE ROLE app LOGIN", "SELECT current_user",
		"SELECT extract(epoch FROM clock_timestamp())::bigint", "SELECT count(*) FROM pg_database WHERE datname = $1",
	},
	"mariadb": {
		"TARRY_TEST_MYSQL_URL", mysqltest.Start, mysqltest.Shared, mysqltest.Open,
		"max_connections=17", "SELECT @@max_connections",
		"CREATE USER app", "SELECT SUBSTRING_INDEX(USER(), '@', 1)",
		"SELECT UNIX_TIMESTAMP(SYSDATE())", "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?",
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

func TestDatabaseServer(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, d dbms) {
		t.Parallel()
		var dir string
		t.Run("while it lasts", func(t *testing.T) {
			s := d.start(t, servertest.Settings(d.limit))
			dir = s.Dir()
			s.Exec("CREATE TABLE k (v VARCHAR(9))")
			s.Exec("INSERT INTO k VALUES ('1')")
			keepsItsData(t, d, s)
			pauses(t, d, s)
		})
		if left := servertest.InFolder(t, dir); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left is %s", dir)
		}
	})
}

func keepsItsData(t *testing.T, d dbms, s *servertest.SQLServer) {
	addr, db := s.Addr(), d.open(t, s.URL())
	for what, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		is(t, ask(t, db, "SELECT v FROM k"), "1")
		end()
		if s.Running() {
			t.Fatalf("%s: it runs", what)
		}
		if _, err := net.Dial("tcp", addr); err == nil {
			t.Fatalf("%s: something listens", what)
		}
		if left := servertest.InFolder(t, s.Dir()); len(left) > 0 {
			t.Fatalf("%s: left are %q", what, left)
		}
		if err := db.PingContext(t.Context()); err == nil {
			t.Fatalf("%s: it answers", what)
		}
		s.Restart()
		is(t, s.Addr(), addr)
		is(t, s.Text("SELECT v FROM k"), "1")
		is(t, s.Text(d.limited), "17")
	}
	s.Restart()
	is(t, s.Text("SELECT v FROM k"), "1")
}

func pauses(t *testing.T, d dbms, s *servertest.SQLServer) {
	db := d.open(t, s.URL())
	is(t, ask(t, db, "SELECT 1"), "1")
	answered := make(chan error, 1)
	s.Pause()
	go func() {
		_, err := db.ExecContext(t.Context(), "SELECT 1")
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a paused server answers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Resume()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	s.Pause() // what stands still can be killed too
}

func TestDatabaseClock(t *testing.T) {
	t.Parallel()
	onAll(t, func(t *testing.T, d dbms) {
		t.Parallel()
		s := d.start(t, servertest.Clock("+1h"))
		db := d.open(t, s.URL())
		for _, want := range []time.Duration{time.Hour, -time.Hour} {
			var now int64
			if err := db.QueryRowContext(t.Context(), d.now).Scan(&now); err != nil {
				t.Fatal(err)
			}
			if ahead := time.Until(time.Unix(now, 0)).Round(time.Minute); ahead != want {
				t.Fatalf("it is %v ahead, not %v", ahead, want)
			}
			s.SetClock("-1h")
		}
	})
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
