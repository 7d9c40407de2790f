package mysqlengine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Recheck bounds the lateness of a message that another process pushes and that is due before
// all others.
const Recheck = 250 * time.Millisecond

// Config configures an Engine. The zero Config suits most uses.
type Config struct {
	// Prefix begins the names of tarry's tables, which are PREFIX_message and others: 1 to
	// 40 bytes of a-z, A-Z, 0-9 and _; "": tarry.
	Prefix string

	// Migrate makes New and Open first create or update the tables, as tarry migrate up does.
	Migrate bool

	// Pace is the least time between two leases of a process. A shorter one delivers sooner and
	// costs more: see engine.Tuning. 0: DefaultPace; less: none. At most engine.MaxPace.
	Pace time.Duration

	// History is the default for queues without settings of their own.
	History engine.History
}

// DefaultPace keeps the 99th percentile of lateness below 15 ms.
const DefaultPace = sqlengine.Pace

// DefaultPrefix begins the names of tarry's tables if Config.Prefix is "".
const DefaultPrefix = "tarry"

const (
	maxBody = 32 << 20 // if max_allowed_packet allows that

	// rowBytes is more than twice the size of a message without its body.
	rowBytes = 64 << 10
)

// Engine is an engine on MySQL or MariaDB, made by New or Open. It is safe for concurrent
// use. Many engines in many processes may share tables.
type Engine struct {
	*sqlengine.Engine
	store *store
}

func (c *Config) prefix() string { return cmp.Or(c.Prefix, DefaultPrefix) }

// New returns an engine on a pool of connections by github.com/go-sql-driver/mysql. The caller
// closes the pool after the engine. A nil cfg is the zero Config.
//
// A call takes one connection of the pool for a transaction, and waits for no second one. It
// needs far fewer round trips if the data source name has both interpolateParams=true and
// multiStatements=true.
func New(ctx context.Context, db *sql.DB, cfg *Config) (*Engine, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	return newEngine(ctx, db, cfg, nil)
}

// newEngine returns an engine with a test's clock; nil: the server's.
func newEngine(ctx context.Context, db *sql.DB, cfg *Config, now func() time.Time) (*Engine, error) {
	prefix := cfg.prefix()
	set, err := tables(prefix)
	if err == nil {
		err = cfg.History.Validate()
	}
	if err != nil {
		return nil, err
	}
	s := &store{db: db, sql: statementsOf(prefix), connections: new(sqlengine.Connections)}
	if err = s.ask(ctx); err == nil {
		err = s.suits(ctx, set, cfg.Migrate)
	}
	if err != nil {
		return nil, fault(ctx, "open", err, false)
	}
	return &Engine{store: s, Engine: sqlengine.New(s, sqlengine.Config{
		Name: "mysql", Recheck: Recheck, History: cfg.History, Pace: rules.Pace(cfg.Pace, DefaultPace), Now: now,
		MaxBody: min(maxBody, (s.packet-rowBytes)/2),
	})}, nil
}

// driverPacket is the driver's default of maxAllowedPacket.
const driverPacket = 64 << 20

// ask reads the settings of the server and of the pool's sessions.
func (s *store) ask(ctx context.Context) error {
	var packet int64
	var version string
	var session session
	err := s.db.QueryRowContext(ctx, "SELECT @@max_allowed_packet, VERSION(), @@sql_mode, @@sql_safe_updates, @@sql_select_limit").
		Scan(&packet, &version, &session.mode, &session.safe, &session.limit)
	if err == nil {
		err = session.suits()
	}
	if err != nil {
		return err
	}
	if tooOld(version) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: "the server is of version " + version + "; tarry needs MySQL 8.0.19, MariaDB 10.6, or a later one"}
	}
	s.packet = int(min(packet, driverPacket)) - 1<<10
	if s.packet < 4*rowBytes {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: "the server's max_allowed_packet is too small: set it to 16M"}
	}
	rows, err := s.db.QueryContext(ctx, "SELECT ?; SELECT ?", 1, 2)
	if err == nil {
		s.several = true
		err = rows.Close()
	} else if refusesSeveral(err) {
		err = nil
	}
	return err
}

// session has the relevant settings of a pool's sessions.
type session struct {
	mode  string
	safe  bool
	limit uint64
}

// suits returns an error for settings that change the meaning of tarry's statements.
func (s *session) suits() error {
	hint := ""
	switch {
	case s.safe:
		hint = "sql_safe_updates is on; turn it off"
	case s.limit < math.MaxUint32:
		hint = fmt.Sprintf("sql_select_limit is %d; set it to 18446744073709551615", s.limit)
	case strings.Contains(s.mode, "ORACLE"):
		hint = "sql_mode has ORACLE; set it to STRICT_TRANS_TABLES"
	default:
		return nil
	}
	return &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: "in the sessions of the pool " + hint + ", in its data source name"}
}

// tooOld reports whether a version lacks SKIP LOCKED, or an alias for inserted rows. A version
// in an unknown form passes.
func tooOld(version string) bool {
	var major, minor, patch int
	version = strings.TrimPrefix(version, "5.5.5-") // a prefix of MariaDB for old clients
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 2 {
		return false
	}
	if strings.Contains(version, "MariaDB") {
		return major < 10 || major == 10 && minor < 6
	}
	return major < 8 || major == 8 && minor == 0 && patch < 19
}
