package pgengine

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	sqltest.Parallel()
	leaktest.Main(pgtest.Main(m))
}

// connect opens a pool of few connections to a database, which is closed with the test.
func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 4
	return connectWith(t, cfg)
}

func connectWith(t testing.TB, cfg *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// newSchema makes a store in its own schema.
func newSchema(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	set, err := migrationsOf(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), set.Print(0)); err != nil {
		t.Fatal(err)
	}
	return name
}

// suite runs parts of the conformance suite (none: all) on one store of a shared database, by
// a clock; nil: the server's.
func suite(t *testing.T, clock *enginetest.Clock, histories int, parts ...string) {
	t.Helper()
	url := pgtest.Shared(t)
	cfg, err := pgxpool.ParseConfig(url)
	ok(t, err)
	cfg.MaxConns, cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = 4, "5min"
	pool, patient := connect(t, url), connectWith(t, cfg)
	var now func() time.Time
	if clock != nil {
		now = clock.Now
	}
	schema := newSchema(t, pool)
	open := func(t *testing.T) engine.Engine {
		if strings.Contains(t.Name(), "/Cut") { // its calls leave locks, which the engine's own timeout ends
			return newEngine(pool, &Config{Schema: schema}, now)
		}
		return newEngine(patient, &Config{Schema: schema}, now) // a busy machine may pause a call for longer
	}
	enginetest.Run(t, enginetest.Harness{
		Clock: clock,
		Open:  open,
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return open(t)
		},
		Histories: histories,
		Parts:     parts,
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	suite(t, enginetest.NewClock(), 5)
}

func TestSuiteServerClock(t *testing.T) {
	t.Parallel()
	suite(t, nil, 2, sqltest.Calls...)
}
