package mysqlengine

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	sqltest.Parallel()
	leaktest.Main(mysqltest.Main(m))
}

// connect opens a pool of few connections to a database, which is closed with the test.
func connect(t testing.TB, url string, several bool) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(mysqltest.DSN(t, url))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams, cfg.MultiStatements = several, several
	cfg.Params = map[string]string{"innodb_lock_wait_timeout": "1"}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(4)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// dropTables drops the tables of a store, so that dropping the database takes less time.
func dropTables(t *testing.T, db *sql.DB, prefix string) {
	t.Helper()
	set, err := tables(prefix)
	if err == nil {
		_, err = set.Down(context.WithoutCancel(t.Context()), db, 0)
	}
	if err != nil {
		t.Error(err)
	}
}

// newPrefix returns a new prefix.
func newPrefix() string { return "t" + strings.ToLower(rand.Text()) }

// suite runs parts of the conformance suite (none: all) on one store of a shared database, by
// a clock; nil: the server's. Creating a store for each test would take longer than the tests.
func suite(t *testing.T, clock *enginetest.Clock, several bool, histories int, parts ...string) {
	t.Helper()
	db := connect(t, mysqltest.Shared(t), several)
	var now func() time.Time
	if clock != nil {
		now = clock.Now
	}
	set, err := tables(DefaultPrefix)
	if err == nil {
		_, err = set.Up(t.Context(), db)
	}
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T) engine.Engine {
		e, err := newEngine(t.Context(), db, &Config{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if e.store.several != several {
			t.Errorf("several statements at once: %v", e.store.several)
		}
		return e
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
	suite(t, enginetest.NewClock(), true, 5)
}

// TestSuiteServerClock also uses a pool that takes one statement at a time.
func TestSuiteServerClock(t *testing.T) {
	t.Parallel()
	suite(t, nil, false, 2, sqltest.Calls...)
}
