package pgengine

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/internal/outage"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestOutageKilled(t *testing.T) {
	t.Parallel()
	outage.Killed(t, pgtest.Start(t, pgtest.Settings("fsync = on")))
}

func TestOutageCut(t *testing.T) {
	t.Parallel()
	outage.Cut(t, pgtest.Shared(t))
}

func TestOutageAnswersLost(t *testing.T) {
	t.Parallel()
	outage.AnswersLost(t, pgtest.Shared(t))
}

func TestOutageHung(t *testing.T) {
	t.Parallel()
	outage.Hung(t, pgtest.Shared(t))
}

// otherSession holds locks in a store.
func otherSession(t *testing.T, raw string) outage.Locks {
	pool := connect(t, raw)
	hold := func(statement string) func() func() {
		return func() (release func()) {
			tx := begin(t, pool)
			_, err := tx.Exec(t.Context(), statement)
			ok(t, err)
			return func() {
				if err := tx.Rollback(context.Background()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return outage.Locks{Rows: hold("SELECT FROM tarry.message FOR UPDATE"), Table: hold("LOCK TABLE tarry.message")}
}

func TestOutageLocked(t *testing.T) {
	t.Parallel()
	for _, limit := range []struct{ name, time, hint string }{{"lock_timeout", "100", ""}, {"statement_timeout", "3000", "statement_timeout"}} {
		t.Run(limit.name, func(t *testing.T) {
			t.Parallel()
			raw := pgtest.Shared(t)
			outage.Locked(t, outage.With(t, raw, limit.name, limit.time), otherSession(t, raw), limit.hint)
		})
	}
}

func TestOutageCrowded(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Settings("max_connections = 12", "superuser_reserved_connections = 0"))
	raw := s.Database()
	outage.Crowded(t, raw, func(ctx context.Context) (hangUp func(), err error) {
		c, err := pgx.Connect(ctx, raw)
		return func() { _ = c.Close(context.Background()) }, err
	})
}

// If the server ends a session that is idle in a transaction, the call runs again, unless that
// repeats.
func TestOutageIdleInTransaction(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	p := pgtest.StartProxy(t, raw)
	c := outage.Open(t, p.URL())
	u, err := url.Parse(raw)
	ok(t, err)
	pool := connect(t, raw)
	limit := func(ms string) { // of the sessions to come
		if _, err := pool.Exec(t.Context(), "ALTER DATABASE "+strings.TrimPrefix(u.Path, "/")+" SET idle_in_transaction_session_timeout = "+ms); err != nil {
			t.Error(err)
		}
	}
	limit("60")
	p.Cut()
	push := func() error {
		_, err := c.Push(t.Context(), "orders", nil, tarry.Key("42"), tarry.OnConflict(tarry.Keep))
		return err
	}
	p.Delay(120 * time.Millisecond)
	outage.Says(t, push(), tarry.ErrUnavailable, "idle_in_transaction_session_timeout")
	eased := make(chan bool)
	time.AfterFunc(500*time.Millisecond, func() {
		defer close(eased)
		limit("0") // nor is a busy machine
		p.Delay(0)
	})
	ok(t, push())
	<-eased
}

func TestOutageVanished(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	other := outage.Open(t, raw).Engine().(*Engine)
	p := pgtest.StartProxy(t, raw)
	sqltest.Vanished(t, other, outage.Open(t, p.URL()).Engine().(*Engine).store, p)
}

func TestOutageLate(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	other := outage.Open(t, raw).Engine().(*Engine)
	p := pgtest.StartProxy(t, raw)
	through := outage.Open(t, outage.With(t, p.URL(), "default_query_exec_mode", "exec")).Engine().(*Engine)
	sqltest.Late(t, other, through, p, "COMMIT\x00")
}

func TestOutageFull(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	folder, grow := pgtest.SmallDisk(t, 16<<20)
	s.Exec("CREATE TABLESPACE small LOCATION '" + folder + "'")
	raw := s.Database()
	u, err := url.Parse(raw)
	ok(t, err)
	s.Exec("ALTER DATABASE " + strings.TrimPrefix(u.Path, "/") + " SET TABLESPACE small")
	outage.Full(t, raw, func() { grow(100 << 20) })
}
