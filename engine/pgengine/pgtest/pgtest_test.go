package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
