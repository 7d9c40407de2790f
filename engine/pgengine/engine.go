package pgengine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Recheck is how long an answer may be relied on while nothing is heard: within it a push
// by another process is met of which no notice came.
const Recheck = time.Second

// Config sets an Engine up. The zero Config is what most want.
type Config struct {
	// Schema is that of tarry's tables, 1 to 40 bytes of a-z, A-Z, 0-9 and _; "":
	// DefaultSchema.
	Schema string

	// Migrate brings the tables to the version needed, and makes them where there are none,
	// as the function of that name does.
	Migrate bool

	// Logger gets what no caller can be told; nil: slog.Default.
	Logger *slog.Logger
}

// DefaultSchema is the schema of tarry's tables unless Config says otherwise.
const DefaultSchema = "tarry"

const (
	coalesce = 512
	lanes    = 2
	maxBody  = 64 << 20 // PostgreSQL takes 1 GiB in one value, and holds up others for it
)

// Engine is an engine on PostgreSQL. Make one with New or Open; its methods may be called
// from many goroutines, and many engines, in many processes, may share a schema.
type Engine struct {
	*sqlengine.Engine
	store *store
}

var _ interface {
	engine.Whole
	engine.AtomicPusher
} = (*Engine)(nil)

// New returns an engine on a pool, which stays the caller's to close, after the engine. A
// nil cfg is the zero Config. It fails as Open does.
//
// A call takes a connection of the pool for a transaction, and none of them waits for
// another while it holds one. The engine has one more of its own, on which it listens. In
// a pool made with pgx's defaults a caller that leaves during a call costs the connection;
// pgconn.CancelRequestContextWatcherHandler spares it.
func New(ctx context.Context, pool *pgxpool.Pool, cfg *Config) (*Engine, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	err := examine(ctx, pool)
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

// minVersion is the oldest PostgreSQL that will do.
const minVersion = 15

// examine asks the server whether it will do.
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

// server is what matters of a server, its database and the sessions of a pool.
type server struct {
	number           int
	version          string
	readOnly         bool
	encoding, client string
}

// suits reports what will not do. An encoding other than UTF8 has no room for some keys, and
// sessions that convert would know one key by two names; SQL_ASCII keeps what it is sent.
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

func orDefault(schema string) string {
	if schema == "" {
		return DefaultSchema
	}
	return schema
}

// newEngine returns an engine that goes by a clock; nil: the server's.
func newEngine(pool *pgxpool.Pool, cfg *Config, now func() time.Time) *Engine {
	schema := orDefault(cfg.Schema)
	s := &store{pool: pool, schema: schema, say: say(schema), notices: newNotices(pool, schema, cfg.logger())}
	s.outcomes.s, s.outcomes.ctx = s, s.notices.ctx
	e := &Engine{store: s, Engine: sqlengine.New(s, sqlengine.Config{
		Name: "postgres", Coalesce: coalesce, Lanes: lanes, Recheck: Recheck, MaxBody: maxBody, Now: now, Notify: s.notices.tell,
	})}
	s.notices.listen(e.Heard)
	return e
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}
