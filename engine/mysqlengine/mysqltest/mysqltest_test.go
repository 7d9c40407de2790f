package mysqltest_test

import (
	"context"
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
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(mysqltest.Main(m))
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// text runs a query and returns what is in its one row and column.
func text(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var s string
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("it is %q, not %q", got, want)
	}
}

func TestServerKeepsItsDataOverKillAndRestart(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	url := s.Database()
	db := mysqltest.Open(t, url)
	exec(t, db, "CREATE TABLE k (v TEXT)")
	exec(t, db, "INSERT INTO k VALUES ('1')")
	addr := s.Addr()
	for what, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		is(t, text(t, db, "SELECT v FROM k"), "1")
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
		is(t, text(t, db, "SELECT v FROM k"), "1")
	}
	s.Restart()
	is(t, text(t, mysqltest.Open(t, url), "SELECT v FROM k"), "1")
}

func TestPauseHoldsUpEveryConnection(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	db := mysqltest.Open(t, s.URL())
	exec(t, db, "DO 1")
	answered := make(chan error, 1)
	s.Pause()
	if s.Running() {
		t.Fatal("it runs")
	}
	go func() {
		_, err := db.ExecContext(t.Context(), "DO 1")
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

func TestSettings(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, mysqltest.Settings("max_connections=17", "innodb_flush_method=O_DIRECT", "innodb_log_buffer_size=4M"))
	is(t, s.Text("SELECT @@max_connections"), "17")
	is(t, s.Text("SELECT @@innodb_flush_method"), "O_DIRECT")
	is(t, s.Text("SELECT @@innodb_log_buffer_size"), "4194304")
	s.Restart()
	is(t, s.Text("SELECT @@max_connections"), "17")
}

func TestClock(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, mysqltest.Clock("+1h"))
	db := mysqltest.Open(t, s.URL())
	ahead := func() time.Duration {
		t.Helper()
		var now int64
		if err := db.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP(SYSDATE())").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return time.Until(time.Unix(now, 0)).Round(time.Minute)
	}
	if d := ahead(); d != time.Hour {
		t.Fatalf("it is %v ahead", d)
	}
	s.SetClock("-1h")
	if d := ahead(); d != -time.Hour {
		t.Fatalf("it is %v ahead", d)
	}
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	for range 2 {
		exec(t, mysqltest.Open(t, s.Database()), "CREATE TABLE k (v TEXT)")
	}
	s.Exec("CREATE USER app@127.0.0.1 IDENTIFIED BY 'secret'")
	s.Exec("GRANT ALL ON *.* TO app@127.0.0.1")
	u, err := url.Parse(mysqltest.As(t, s.URL(), "app"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("app", "secret")
	is(t, text(t, mysqltest.Open(t, u.String()), "SELECT CURRENT_USER()"), "app@127.0.0.1")
}

func TestSharedServer(t *testing.T) {
	var name, port string
	t.Run("one", func(t *testing.T) {
		db := mysqltest.Open(t, mysqltest.Shared(t))
		name, port = text(t, db, "SELECT DATABASE()"), text(t, db, "SELECT @@port")
	})
	db := mysqltest.Open(t, mysqltest.Shared(t))
	is(t, text(t, db, "SELECT @@port"), port)
	is(t, text(t, db, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+name+"'"), "0")

	// What the variable names is used instead, and gets the database.
	s := mysqltest.Start(t)
	t.Setenv("TARRY_TEST_MYSQL_URL", s.URL())
	u, err := url.Parse(mysqltest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	is(t, u.Host, s.Addr())
	is(t, s.Text("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", strings.TrimPrefix(u.Path, "/")), "1")
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t)
	proxy := mysqltest.StartProxy(t, s.Database())
	db := mysqltest.Open(t, proxy.URL())
	exec(t, db, "CREATE TABLE k (v TEXT)")
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if _, err := tx.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO k VALUES ('1')"); err == nil {
		t.Error("a cut connection answers")
	}
	_ = tx.Rollback() // it is gone
	is(t, text(t, db, "SELECT COUNT(*) FROM k"), "0")
}

func TestNothingIsLeft(t *testing.T) {
	var dir string
	t.Run("test", func(t *testing.T) {
		dir = mysqltest.Start(t).Dir()
		if len(servertest.InFolder(t, dir)) == 0 {
			t.Errorf("none runs in %s", dir)
		}
	})
	if left := servertest.InFolder(t, dir); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left is %s", dir)
	}
}
