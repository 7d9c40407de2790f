package pgengine

import (
	"context"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		engine.Register(scheme, func(ctx context.Context, u *url.URL) (engine.Engine, error) { return Open(ctx, u) })
		engine.RegisterMigrations(scheme, openMigrations)
	}
}

// DefaultPool is the most connections of an engine that Open makes, besides the one on which
// it listens.
const DefaultPool = 8

// Open opens the engine at a URL:
//
//	postgres://user:password@host:5432/database
//	postgres://host1:5432,host2:5432/database?target_session_attrs=read-write
//
// Options: schema, migrate and pace as in Config; history and history_max, Config.History; pool, the most connections (DefaultPool);
// password_file, read instead of a password in the URL. All others belong to pgx and libpq,
// such as sslmode, sslrootcert, connect_timeout and default_query_exec_mode, or are settings
// of the session. Unknown ones are refused.
//
// It fails with ErrInvalid if the URL, the server or the version of the tables is not
// suitable, and with ErrUnavailable if there is no answer. It fails with ErrUnauthorized for
// a wrong password, and with ErrForbidden for missing rights.
func Open(ctx context.Context, u *url.URL) (*Engine, error) {
	to, err := parse(u)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, to.pool)
	if err != nil {
		return nil, fault(ctx, "open", err, false)
	}
	e, err := New(ctx, pool, to.cfg)
	if err != nil {
		pool.Close()
		return nil, err
	}
	e.store.own = true
	return e, nil
}

// target is a parsed URL.
type target struct {
	cfg  *Config
	pool *pgxpool.Config
}

// parse parses a URL.
func parse(u *url.URL) (*target, error) {
	r := storeurl.New(u)
	to := &target{cfg: new(Config)}
	r.Text("schema", &to.cfg.Schema)
	r.Bool("migrate", &to.cfg.Migrate)
	r.Pace(&to.cfg.Pace)
	r.History(&to.cfg.History)
	pool := int64(DefaultPool)
	if r.Int("pool", &pool) && (pool < 1 || pool > math.MaxInt32) {
		r.Fail("a pool has at least 1 connection")
	}
	var password string
	given := r.Password("password_file", &password)
	rest := r.Rest()
	if u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(strings.TrimPrefix(u.EscapedPath(), "/"), "/@") {
		r.Fail("an example is postgres://user@127.0.0.1:5432/database; in a password, escape / ? # and @")
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	plain := *u
	plain.RawQuery = rest.Encode()
	cfg, err := pgxpool.ParseConfig(plain.String())
	if err != nil {
		r.Fail("%s", culprit(plain, rest))
		return nil, r.Done()
	}
	to.pool = cfg
	if given {
		cfg.ConnConfig.Password = password
	}
	if !rest.Has("pool_max_conns") {
		cfg.MaxConns = int32(pool)
	}
	params := cfg.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "tarry"
	}
	params["client_encoding"] = "UTF8" // whatever the role or the database sets
	// A context that ends cancels the statement, so that the connection is kept. The
	// exception is two modes that users set for a PgBouncer: 1.18 crashes on some cancel
	// requests, and connections to it are cheap.
	if m := cfg.ConnConfig.DefaultQueryExecMode; m != pgx.QueryExecModeExec && m != pgx.QueryExecModeSimpleProtocol {
		cfg.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelWithin}
		}
	}
	// A server must not hold locks for minutes while it sends to a machine that has vanished.
	// A PgBouncer would refuse this as an option of the connection.
	if params["tcp_user_timeout"] == "" {
		cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET tcp_user_timeout = '10s'")
			return err
		}
	}
	// A PgBouncer may forward notices for another client.
	cfg.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	return to, nil
}

// cancelWithin is how long the server may take to cancel a statement. After that the
// connection is closed.
const cancelWithin = time.Second

// culprit names the option that is invalid. pgx's own error may contain a password.
func culprit(u url.URL, options url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		without := maps.Clone(options)
		delete(without, name)
		u.RawQuery = without.Encode()
		if _, err := pgxpool.ParseConfig(u.String()); err == nil {
			return "what is given as " + name + " will not do for PostgreSQL, or names a file that cannot be read"
		}
	}
	return "this is no URL of PostgreSQL; an example is postgres://user@127.0.0.1:5432/database"
}
