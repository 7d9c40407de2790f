package pgengine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Recheck is how long an answer holds without a notice. If a notice is lost, a push by
// another process is seen within this time.
const Recheck = time.Second

// Config configures an Engine. The zero Config suits most uses.
type Config struct {
	// Schema is the schema of tarry's tables, 1 to 40 bytes of a-z, A-Z, 0-9 and _; "":
	// DefaultSchema.
	Schema string

	// Migrate creates the tables or updates them to the needed version, as the function
	// Migrate does.
	Migrate bool

	// Pace is the least time between two leases of a process. A shorter one delivers sooner and
	// costs more: see engine.Tuning. 0: DefaultPace; less: none. At most engine.MaxPace.
	Pace time.Duration

	// History is the default for queues without settings of their own.
	History engine.History

	// Logger gets errors without a caller; nil: slog.Default.
	Logger *slog.Logger
}

// DefaultPace keeps the 99th percentile of lateness below 10 ms.
const DefaultPace = sqlengine.Pace

// DefaultSchema is the schema of tarry's tables if Config.Schema is "".
const DefaultSchema = "tarry"

const maxBody = 64 << 20 // PostgreSQL takes values of 1 GiB, but they delay others

// Engine is an engine on PostgreSQL, made by New or Open. It is safe for concurrent use. Many
// engines in many processes may share a schema.
type Engine struct {
	*sqlengine.Engine
	store *store
}

// New returns an engine on a pool. The caller closes the pool after the engine. A nil cfg is
// the zero Config. It fails as Open does.
//
// A call takes one connection of the pool for a transaction, and waits for no second one. The
// engine listens on a connection outside the pool. With pgx's defaults, a call closes its
// connection when its context ends; pgconn.CancelRequestContextWatcherHandler avoids that.
func New(ctx context.Context, pool *pgxpool.Pool, cfg *Config) (*Engine, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	err := cfg.History.Validate()
	if err == nil {
		err = examine(ctx, pool)
	}
	if err == nil && cfg.Migrate {
		err = Migrate(ctx, pool, cfg.Schema)
	}
	if err == nil {
		err = check(ctx, pool, orDefault(cfg.Schema))
	}
	if err != nil {
		return nil, err
	}
	return newEngine(pool, cfg, nil), nil
}

// minVersion is the oldest supported PostgreSQL.
const minVersion = 15

// examine checks that the server is suitable.
func examine(ctx context.Context, pool *pgxpool.Pool) error {
	var s server
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, current_setting('server_encoding'), current_setting('client_encoding')`).
		Scan(&s.number, &s.version, &s.readOnly, &s.encoding, &s.client)
	if err != nil {
		return fault(ctx, "open", err, false)
	}
	return s.suits()
}

// server has the relevant properties of a server, its database and a pool's sessions.
type server struct {
	number           int
	version          string
	readOnly         bool
	encoding, client string
}

// suits returns an error for an unsuitable server. Encodings other than UTF8 lack characters
// that keys may have, and sessions that convert would see one key as two. SQL_ASCII stores
// bytes unchanged.
func (s *server) suits() error {
	hint := ""
	switch {
	case s.number < minVersion*10000:
		hint = fmt.Sprintf("this PostgreSQL is of version %s; tarry needs %d or later", s.version, minVersion)
	case s.readOnly:
		hint = readOnly
	case s.encoding != "UTF8" && s.encoding != "SQL_ASCII":
		hint = "the encoding of the database is " + s.encoding + "; keep tarry's tables in one whose encoding is UTF8"
	case s.client != "UTF8":
		hint = "the client_encoding of the pool's sessions is " + s.client + "; set it to UTF8"
	default:
		return nil
	}
	return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: hint}
}

func orDefault(schema string) string { return cmp.Or(schema, DefaultSchema) }

// newEngine returns an engine with a test's clock; nil: the server's.
func newEngine(pool *pgxpool.Pool, cfg *Config, now func() time.Time) *Engine {
	schema := orDefault(cfg.Schema)
	s := &store{pool: pool, schema: schema, sql: statementsOf(schema), notices: newNotices(pool, schema, cmp.Or(cfg.Logger, slog.Default()))}
	s.outcomes.s, s.outcomes.ctx = s, s.notices.ctx
	e := &Engine{store: s, Engine: sqlengine.New(s, sqlengine.Config{
		Name: "postgres", Recheck: Recheck, MaxBody: maxBody, History: cfg.History, Pace: rules.Pace(cfg.Pace, DefaultPace), Now: now, Notify: s.notices.tell,
	})}
	s.notices.listen(func(s sqlengine.Sooner) { sqlengine.Heard(e.Engine, s) })
	return e
}
