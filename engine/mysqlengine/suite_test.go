package mysqlengine

import (
	"crypto/rand"
	"database/sql"
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(mysqltest.Main(m)) }

//go:embed migrations/00001_tables.sql
var tables string

// connect opens a pool of few connections to a database, which is closed with the test.
func connect(t testing.TB, url string, several bool) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(mysqltest.DSN(t, url))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams, cfg.MultiStatements = several, several
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

// newPrefix makes a store with a prefix of its own.
func newPrefix(t testing.TB, db *sql.DB) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	up, _, _ := strings.Cut(tables, "-- +goose Down")
	up = strings.NewReplacer("{", "`"+name+"_", "}", "`").Replace(up)
	for statement := range strings.SplitSeq(up, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return name
}

// suite runs the conformance suite on a shared database, by a clock; nil: the server's.
func suite(t *testing.T, clock *enginetest.Clock, several bool, histories int) {
	t.Helper()
	db := connect(t, mysqltest.Shared(t), several)
	var now func() time.Time
	if clock != nil {
		now = clock.Now
	}
	open := func(t *testing.T, prefix string) engine.Engine {
		e, err := newEngine(t.Context(), db, &Config{Prefix: prefix}, now)
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
		Open:  func(t *testing.T) engine.Engine { return open(t, newPrefix(t, db)) },
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return open(t, e.(*Engine).store.prefix)
		},
		Histories: histories,
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	suite(t, enginetest.NewClock(), true, 10)
}

func TestSuiteServerClock(t *testing.T) {
	t.Parallel()
	suite(t, nil, true, 2)
}

// TestSuiteOneByOne is on a pool that takes one statement at a time.
func TestSuiteOneByOne(t *testing.T) {
	t.Parallel()
	suite(t, enginetest.NewClock(), false, 2)
}
