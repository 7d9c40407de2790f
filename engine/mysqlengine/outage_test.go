package mysqlengine

import (
	"context"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestOutageKilled(t *testing.T) {
	t.Parallel()
	outage.Killed(t, mysqltest.Start(t, mysqltest.Settings("innodb_flush_method=fsync")))
}

func TestOutageCut(t *testing.T) {
	t.Parallel()
	outage.Cut(t, mysqltest.Shared(t))
}

func TestOutageAnswersLost(t *testing.T) {
	t.Parallel()
	outage.AnswersLost(t, mysqltest.Shared(t))
}

func TestOutageHung(t *testing.T) {
	t.Parallel()
	outage.Hung(t, mysqltest.Shared(t))
}

func TestOutageVanished(t *testing.T) {
	t.Parallel()
	raw := mysqltest.Shared(t)
	other := outage.Open(t, raw).Engine().(*Engine)
	var version string
	ok(t, other.store.db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version))
	if !strings.Contains(version, "MariaDB") {
		t.Skip("MySQL takes two minutes")
	}
	p := mysqltest.StartProxy(t, raw)
	sqltest.Vanished(t, other, outage.Open(t, p.URL()).Engine().(*Engine).store, p)
}

func TestOutageLate(t *testing.T) {
	t.Parallel()
	raw := mysqltest.Shared(t)
	p := mysqltest.StartProxy(t, raw)
	sqltest.Late(t, outage.Open(t, raw).Engine().(*Engine), outage.Open(t, p.URL()).Engine().(*Engine), p, "COMMIT")
}

// otherSession holds locks in a store.
func otherSession(t *testing.T, raw string) outage.Locks {
	db := mysqltest.Open(t, raw)
	hold := func(statement, end string) func() func() {
		return func() (release func()) {
			ctx := context.Background()
			conn, err := db.Conn(ctx)
			ok(t, err)
			for _, s := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET autocommit = 0", statement} {
				_, err = conn.ExecContext(ctx, s)
				ok(t, err)
			}
			return func() {
				if _, err := conn.ExecContext(ctx, end); err != nil {
					t.Error(err)
				}
				_ = conn.Close() // its locks are gone
			}
		}
	}
	return outage.Locks{
		Rows:  hold("SELECT id FROM tarry_message FOR UPDATE", "ROLLBACK"),
		Table: hold("LOCK TABLES tarry_message WRITE", "UNLOCK TABLES"),
	}
}

func TestOutageLocked(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct{ name, time, hint string }{{"lock_wait_timeout", "1", ""}, {"max_statement_time", "3", "time limit for statements"}} {
		t.Run(limit.name, func(t *testing.T) {
			t.Parallel()
			if limit.name == "max_statement_time" && mysqltest.IsMySQL() {
				t.Skip("MySQL has no limit for all statements")
			}
			raw := mysqltest.Start(t, mysqltest.Settings(limit.name+"="+limit.time)).Database()
			outage.Locked(t, raw, otherSession(t, raw), limit.hint)
		})
	}
}

func TestOutageCrowded(t *testing.T) {
	t.Parallel()
	s := mysqltest.Start(t, mysqltest.Settings("max_connections=12"))
	raw := s.Database()
	db := mysqltest.Open(t, raw)
	outage.Crowded(t, raw, func(ctx context.Context) (hangUp func(), err error) {
		c, err := db.Conn(ctx)
		return func() { _ = c.Close() }, err
	})
}

func TestOutageFull(t *testing.T) {
	t.Parallel()
	var grow func(bytes int)
	s := mysqltest.Start(t, mysqltest.Settings("skip-log-bin", "loose-innodb-undo-tablespaces=0"), mysqltest.SmallDisk(t, 30<<20, &grow)) // a full binary log waits, full undo tablespaces end MariaDB 11
	outage.Full(t, s.Database(), func() { grow(260 << 20) })
}
