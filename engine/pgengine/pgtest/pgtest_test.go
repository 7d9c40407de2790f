package pgtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(pgtest.Main(m))
}

// text runs a query and returns the text in its one row and column.
func text(t *testing.T, p *pgxpool.Pool, sql string) string {
	t.Helper()
	var s string
	if err := p.QueryRow(t.Context(), sql).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
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
	s := pgtest.Start(t)
	s.Exec("CREATE TABLE k (v text); INSERT INTO k VALUES ('1')")
	addr := s.Addr()
	for what, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		p := pgtest.Pool(t, s.URL())
		is(t, text(t, p, "SELECT v FROM k"), "1")
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
		if err := p.Ping(t.Context()); err == nil {
			t.Fatalf("%s: it answers", what)
		}
		s.Restart()
		is(t, s.Addr(), addr)
		is(t, s.Text("SELECT v FROM k"), "1")
		is(t, text(t, p, "SELECT v FROM k"), "1")
	}
	s.Restart()
	is(t, s.Text("SELECT v FROM k"), "1")
}

func TestPauseHoldsUpEveryConnection(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	p := pgtest.Pool(t, s.URL())
	c, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	answered := make(chan error, 1)
	s.Pause()
	if s.Running() {
		t.Fatal("it runs")
	}
	go func() {
		_, err := c.Exec(t.Context(), "SELECT 1")
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
	s := pgtest.Start(t, pgtest.Settings("max_connections = 7", "fsync = on"))
	is(t, s.Text("SHOW max_connections"), "7")
	is(t, s.Text("SHOW fsync"), "on")
	s.Exec("ALTER SYSTEM SET lock_timeout = '5s'")
	s.Restart()
	is(t, s.Text("SHOW lock_timeout"), "5s")
}

func TestClock(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Clock("+1h"))
	p := pgtest.Pool(t, s.URL()) // asks another process of the server than s does
	ahead := func() time.Duration {
		t.Helper()
		var now time.Time
		if err := p.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return time.Until(now).Round(time.Minute)
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
	s := pgtest.Start(t)
	a, b := pgtest.Pool(t, s.Database()), pgtest.Pool(t, s.Database())
	for _, p := range []*pgxpool.Pool{a, b} {
		if _, err := p.Exec(t.Context(), "CREATE TABLE k (v text)"); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec("CREATE ROLE app LOGIN")
	is(t, text(t, pgtest.Pool(t, pgtest.As(t, s.URL(), "app")), "SELECT current_user::text"), "app")
}

func TestSharedServer(t *testing.T) {
	var name, addr string
	t.Run("one", func(t *testing.T) {
		p := pgtest.Pool(t, pgtest.Shared(t))
		name = text(t, p, "SELECT current_database()::text")
		addr = p.Config().ConnConfig.Host + fmt.Sprint(p.Config().ConnConfig.Port)
		c, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Release() // and stays open when the database is dropped
	})
	p := pgtest.Pool(t, pgtest.Shared(t))
	if got := p.Config().ConnConfig.Host + fmt.Sprint(p.Config().ConnConfig.Port); got != addr {
		t.Errorf("another server was started, at %s", got)
	}
	is(t, text(t, p, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"), "0")

	// What the variable names is used instead, and gets the database.
	s := pgtest.Start(t)
	t.Setenv("TARRY_TEST_POSTGRES_URL", s.URL())
	u, err := url.Parse(pgtest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	is(t, u.Host, s.Addr())
	is(t, s.Text("SELECT count(*)::text FROM pg_database WHERE datname = $1", strings.TrimPrefix(u.Path, "/")), "1")
}

func TestProxy(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	proxy := pgtest.StartProxy(t, s.Database())
	p := pgtest.Pool(t, proxy.URL())
	c, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(t.Context(), "CREATE TABLE k (v text)"); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if _, err := c.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a cut connection answers")
	}
	is(t, text(t, p, "SELECT count(*)::text FROM k"), "0")
}

func TestFailoverToReplica(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	db := s.Database()
	r := s.Replica()
	both := pgtest.Pool(t, pgtest.JoinURL(t, db, r))
	if _, err := both.Exec(t.Context(), "CREATE TABLE k (v text); INSERT INTO k VALUES ('1')"); err != nil {
		t.Fatal(err)
	}
	r.CatchUp(s)
	is(t, r.Text("SELECT pg_is_in_recovery()::text"), "true")
	s.Kill()
	r.Promote()
	both.Reset() // its connections lead to the dead one
	is(t, text(t, both, "INSERT INTO k SELECT '2' FROM k RETURNING v"), "2")
	r.Restart()
	both.Reset()
	is(t, text(t, both, "SELECT count(*)::text FROM k"), "2")
}

func TestBouncerInTransactionMode(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	b := s.Bouncer("default_pool_size = 1")
	connect := func() *pgx.Conn {
		t.Helper()
		conf, err := pgx.ParseConfig(b.URL(s.URL()))
		if err != nil {
			t.Fatal(err)
		}
		conf.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		c, err := pgx.ConnectConfig(t.Context(), conf)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	// Two clients have one connection to the server, each for a transaction.
	var pids []string
	for range 2 {
		var pid string
		if err := connect().QueryRow(t.Context(), "SELECT pg_backend_pid()::text").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	is(t, pids[0], pids[1])
	b.Restart()
	if err := connect().Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	var dirs []string
	t.Run("test", func(t *testing.T) {
		s := pgtest.Start(t)
		r := s.Replica()
		b := s.Bouncer()
		p := pgtest.Pool(t, b.URL(s.URL()))
		if _, err := p.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Fatal(err)
		}
		dirs = []string{s.Dir(), r.Dir(), b.Dir()}
		for _, dir := range dirs {
			if len(servertest.InFolder(t, dir)) == 0 {
				t.Errorf("none runs in %s", dir)
			}
		}
	})
	for _, dir := range dirs {
		if left := servertest.InFolder(t, dir); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left is %s", dir)
		}
	}
	if slices.Contains(dirs, "") {
		t.Errorf("the folders are %q", dirs)
	}
}
