package pgengine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// with returns a URL with further options.
func with(t testing.TB, raw, options string) string {
	t.Helper()
	u, err := url.Parse(raw)
	ok(t, err)
	u.RawQuery += "&" + options
	return u.String()
}

func refused(t testing.TB, raw string, want error, hint string) {
	t.Helper()
	e, err := engine.Open(t.Context(), raw)
	if err == nil {
		ok(t, e.Close())
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v and %q are wanted, and it says: %v", want, hint, err)
	}
}

// use pushes, leases and acks.
func use(t testing.TB, raw string) {
	t.Helper()
	c, err := tarry.Open(t.Context(), raw, nil)
	ok(t, err)
	useClient(t, c)
	ok(t, c.Close())
}

func useClient(t testing.TB, c *tarry.Client) {
	t.Helper()
	_, err := c.Push(t.Context(), "orders", []byte("x"), tarry.Key("k"), tarry.Header("a", "b"))
	ok(t, err)
	got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1, Wait: time.Minute})
	ok(t, err)
	if len(got.Messages) != 1 || string(got.Messages[0].Body) != "x" {
		t.Fatalf("leased are %+v", got.Messages)
	}
	settled, err := c.Settle(t.Context(), []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
	ok(t, err)
	ok(t, settled[0].Err)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	refused(t, raw, engine.ErrInvalid, "there is no store tarry; run tarry migrate up --store URL, or open it with the option migrate=true")
	refused(t, with(t, raw, "schema=a-b"), engine.ErrInvalid, `the store's name "a-b"`)
	refused(t, with(t, raw, "shema=x"), engine.ErrInvalid, `"shema"`)
	refused(t, with(t, raw, "statement_timeout=x"), engine.ErrInvalid, "refuses")
	refused(t, strings.Replace(raw, "tarry_test_", "nowhere_", 1), engine.ErrInvalid, "create the database")
	refused(t, "postgres://u:hunter2@127.0.0.1:1/db", engine.ErrUnavailable, "127.0.0.1:1")
	_, err := engine.Open(t.Context(), "postgres://127.0.0.1:1/db") // with TLS and without
	if n := strings.Count(err.Error(), "refused"); n != 1 {
		t.Errorf("it says %d times that it is refused: %v", n, err)
	}
	use(t, with(t, raw, "migrate=true"))
	use(t, raw)
	use(t, with(t, raw, "pool=1"))

	pool := connect(t, raw)
	_, err = pool.Exec(t.Context(), "INSERT INTO tarry.migrations (version) VALUES (1000)")
	ok(t, err)
	for _, options := range []string{"", "migrate=true"} {
		refused(t, with(t, raw, options), engine.ErrInvalid, "use a newer tarry")
	}
}

// Ten processes that start at once create one store.
func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	errs := make(chan error)
	for range 10 {
		go func() {
			e, err := engine.Open(t.Context(), with(t, raw, "migrate=true"))
			if err == nil {
				err = e.Close()
			}
			errs <- err
		}()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// The rights in docs/engines/sql.md suffice to use a store, and not to create one.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	raw := s.Database()
	use(t, with(t, raw, "migrate=true"))
	pool := connect(t, raw)
	_, err := pool.Exec(t.Context(), "CREATE ROLE app LOGIN")
	ok(t, err)
	app := pgtest.As(t, raw, "app")
	refused(t, app, engine.ErrForbidden, "docs/engines/sql.md")
	_, err = pool.Exec(t.Context(), `GRANT USAGE ON SCHEMA tarry TO app;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tarry TO app;
		REVOKE INSERT, UPDATE, DELETE ON tarry.migrations FROM app;
		GRANT USAGE ON SEQUENCE tarry.id_block TO app`)
	ok(t, err)
	use(t, app)
	use(t, with(t, app, "migrate=true"))
	refused(t, with(t, app, "migrate=true&schema=other"), engine.ErrForbidden, "docs/engines/sql.md")
	c, err := tarry.Open(t.Context(), app, nil)
	ok(t, err)
	ctx := t.Context()
	ok(t, c.Pause(ctx, "orders", 0))
	ok(t, c.Resume(ctx, "orders"))
	_, err = c.Push(ctx, "orders", nil, tarry.Key("gone"), tarry.Remember(time.Hour))
	ok(t, err)
	ok(t, c.Cancel(ctx, tarry.ByKey("gone").Of("orders")))
	_, err = c.Purge(ctx, "orders", tarry.PurgeFinished)
	ok(t, err)
	ok(t, c.Close())
}

func TestSuits(t *testing.T) {
	t.Parallel()
	if err := (&server{140020, "14.20", false, "UTF8", "UTF8"}).suits(); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "of version 14.20; tarry needs 15") {
		t.Error(err)
	}
	ok(t, (&server{150000, "15.0", false, "UTF8", "UTF8"}).suits())
}

// A database whose encoding lacks characters is refused; SQL_ASCII is not. Sessions of Open
// ignore the encoding that a database or a role sets; a caller's pool whose sessions would
// convert keys is refused.
func TestEncodings(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	pool := connect(t, raw)
	say := func(text, database string) {
		_, err := pool.Exec(context.WithoutCancel(t.Context()), fmt.Sprintf(text, database))
		ok(t, err)
	}
	for encoding, hint := range map[string]string{"LATIN1": "the encoding of the database is LATIN1", "SQL_ASCII": ""} {
		name := "tarry_test_" + strings.ToLower(rand.Text())
		say("CREATE DATABASE %s ENCODING '"+encoding+"' LOCALE 'C' TEMPLATE template0", name)
		t.Cleanup(func() { say("DROP DATABASE %s WITH (FORCE)", name) })
		u, err := url.Parse(raw)
		ok(t, err)
		u.Path = name
		if hint == "" {
			use(t, with(t, u.String(), "migrate=true"))
			use(t, with(t, u.String(), "default_query_exec_mode=simple_protocol"))
		} else {
			refused(t, with(t, u.String(), "migrate=true"), engine.ErrInvalid, hint)
		}
	}
	say("ALTER DATABASE %s SET client_encoding = 'LATIN1'", pool.Config().ConnConfig.Database)
	converts := connect(t, raw)
	_, err := New(t.Context(), converts, nil)
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "client_encoding of the pool's sessions is LATIN1") {
		t.Errorf("a pool of sessions that convert: %v", err)
	}
	c, err := tarry.Open(t.Context(), with(t, raw, "migrate=true"), nil)
	ok(t, err)
	defer c.Close()
	for _, key := range []string{"é", "日本 😀"} {
		_, err = c.Push(t.Context(), "orders", nil, tarry.Key(key), tarry.In(time.Hour))
		ok(t, err)
		var there bool
		ok(t, pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM tarry.message WHERE key = $1)", key).Scan(&there)) // by a session in UTF8
		if !there {
			t.Errorf("%q is stored as another key", key)
		}
	}
}

// A standby is refused. Of several servers the primary is found, also after a failover.
func TestStandby(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	raw := s.Database()
	use(t, with(t, raw, "migrate=true"))
	r := s.Replica()
	r.CatchUp(s)
	standby := strings.Replace(raw, s.Addr(), r.Addr(), 1)
	refused(t, standby, engine.ErrInvalid, "target_session_attrs=read-write")
	c, err := tarry.Open(t.Context(), pgtest.JoinURL(t, standby, s), nil)
	ok(t, err)
	_, err = c.Push(t.Context(), "orders", nil, tarry.Key("before"), tarry.In(time.Hour))
	ok(t, err)
	r.CatchUp(s)
	s.Kill()
	r.Promote()
	for {
		if _, err = c.Push(t.Context(), "orders", nil, tarry.Key("after"), tarry.OnConflict(tarry.Keep)); err == nil {
			break
		}
		if !errors.Is(err, tarry.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if !sqltest.Has(t, c, "before") || !sqltest.Has(t, c, "after") {
		t.Error("something was lost")
	}
	ok(t, c.Close())
}

// With a PgBouncer in transaction mode all works, and a warning says that no notices come.
func TestBouncer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	raw := s.Database()
	use(t, with(t, raw, "migrate=true"))
	to, err := parsed(t, with(t, s.Bouncer("default_pool_size = 3").URL(raw), "default_query_exec_mode=exec"))
	ok(t, err)
	warned := make(servertest.Lines, 1)
	to.cfg.Logger = slog.New(slog.NewTextHandler(warned, nil))
	pool := connectWith(t, to.pool)
	e, err := New(t.Context(), pool, to.cfg)
	ok(t, err)
	c := tarry.New(e, nil)
	for range 3 {
		useClient(t, c)
	}
	_, err = c.Queue(t.Context(), "orders")
	ok(t, err)
	if line := <-warned; !strings.Contains(line, "no notices come") || !strings.Contains(line, "PgBouncer in transaction mode") {
		t.Errorf("the log says %q", line)
	}
	// None of its connections listens any more. Each is checked, in a transaction of its own.
	for range 3 {
		var channels int
		ok(t, begin(t, pool).QueryRow(t.Context(), "SELECT count(*) FROM pg_listening_channels()").Scan(&channels))
		if channels > 0 {
			t.Error("a connection of the PgBouncer still listens")
		}
	}
	ok(t, errors.Join(c.Close(), e.Close()))
}

// A call whose context ends returns the context's error, and the connection stays.
func TestCallerWhoLeaves(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	use(t, with(t, raw, "migrate=true"))
	to, err := parsed(t, with(t, raw, "pool=1"))
	ok(t, err)
	pool := connectWith(t, to.pool)
	e, err := New(t.Context(), pool, to.cfg)
	ok(t, err)
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	ctx := t.Context()
	_, err = c.Push(ctx, "orders", nil, tarry.Key("held"), tarry.In(time.Hour))
	ok(t, err)
	pid := func() (n int) {
		ok(t, pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&n))
		return n
	}
	before := pid()
	other := connect(t, raw)
	tx := begin(t, other)
	_, err = tx.Exec(ctx, "SELECT * FROM tarry.message FOR UPDATE")
	ok(t, err)
	leaving, leave := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		_, err := e.Cancel(leaving, []engine.Ref{{Queue: "orders", Key: "held"}})
		done <- err
	}()
	for waiting := 0; waiting == 0; {
		ok(t, other.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", before).Scan(&waiting))
	}
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "57014") {
		t.Errorf("it says %v", err)
	}
	ok(t, tx.Rollback(ctx))
	if after := pid(); after != before {
		t.Errorf("the connection %d was given up for %d", before, after)
	}
	ok(t, c.Cancel(ctx, tarry.ByKey("held").Of("orders")))
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	m, err := engine.OpenMigrations(raw)
	ok(t, err)
	defer m.Close()
	ctx := t.Context()
	done, err := m.Up(ctx)
	ok(t, err)
	if fmt.Sprint(done) != "[1]" {
		t.Errorf("applied are %v", done)
	}
	use(t, raw)
	_, err = m.Down(ctx, 0)
	ok(t, err)
	all, err := m.Status(ctx)
	ok(t, err)
	if len(all) != 1 || !all[0].Applied.IsZero() {
		t.Errorf("the status is %v", all)
	}
	refused(t, raw, engine.ErrInvalid, "there is no store")
}
