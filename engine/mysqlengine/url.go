package mysqlengine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	engine.Register("mysql", func(ctx context.Context, u *url.URL) (engine.Engine, error) { return Open(ctx, u) })
	engine.RegisterMigrations("mysql", openMigrations)
}

// DefaultPool is the most connections of an engine, unless the URL sets another number.
const DefaultPool = 10

const (
	maxPool     = 1000
	dialTimeout = 3 * time.Second
	idleTime    = time.Minute // after which a connection is closed
)

// Open opens the engine at a URL, in a database that exists:
//
//	mysql://user:password@host:3306/database
//
// Options: prefix, migrate and pace as in Config; history and history_max, Config.History; pool, the most connections; password_file, read
// instead of a password in the URL; tls=true for TLS. TLS trusts the system's certificates
// and those of ca_file, and uses the client certificate of cert_file and key_file.
//
// It fails with ErrInvalid if the URL, the server or its tables are not suitable,
// ErrUnauthorized for a wrong password, and ErrUnavailable if there is no answer.
func Open(ctx context.Context, u *url.URL) (*Engine, error) {
	driver, pool, cfg, err := parse(u)
	if err != nil {
		return nil, err
	}
	c, err := mysql.NewConnector(driver)
	if err != nil {
		return nil, &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: err.Error()}
	}
	db := sql.OpenDB(connector{c})
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	db.SetConnMaxIdleTime(idleTime)
	e, err := New(ctx, db, cfg)
	if err != nil {
		_ = db.Close() // it holds nothing
		return nil, err
	}
	e.store.own = true
	return e, nil
}

// connector makes connections with READ COMMITTED transactions. The server closes them, and
// frees their locks, soon after the client's machine has vanished. MySQL has no time limit
// for idle transactions, so there the limit applies to idle connections.
type connector struct{ driver.Connector }

const settings = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION wait_timeout = CAST(LEAST(@@wait_timeout, 120) AS UNSIGNED)" +
	"/*M! , idle_transaction_timeout = IF(@@idle_transaction_timeout = 0, 10, @@idle_transaction_timeout) */"

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, settings, nil); err != nil {
		_ = conn.Close() // the first error says more
		return nil, err
	}
	return conn, nil
}

// parse parses a URL.
func parse(u *url.URL) (*mysql.Config, int, *Config, error) {
	r := storeurl.New(u)
	driver, cfg := mysql.NewConfig(), new(Config)
	r.Text("prefix", &cfg.Prefix)
	r.Bool("migrate", &cfg.Migrate)
	r.Pace(&cfg.Pace)
	r.History(&cfg.History)
	pool := int64(DefaultPool)
	if r.Int("pool", &pool); pool < 2 || pool > maxPool {
		r.Fail("pool is 2 to %d connections", maxPool)
	}
	driver.User = u.User.Username()
	r.Password("password_file", &driver.Passwd)
	driver.Net, driver.Addr = "tcp", storeurl.Address(u.Host, "3306")
	driver.DBName = strings.Trim(u.Path, "/")
	useTLS := false
	if r.Bool("tls", &useTLS); useTLS {
		driver.TLS = r.TLS()
		driver.TLS.ServerName, _, _ = net.SplitHostPort(driver.Addr)
	}
	if u.Opaque != "" || u.Fragment != "" || driver.DBName == "" || strings.Contains(driver.DBName, "/") {
		r.Fail("an example is mysql://user@127.0.0.1:3306/database")
	}
	driver.InterpolateParams, driver.MultiStatements = true, true
	driver.Params = map[string]string{
		"innodb_lock_wait_timeout": "1", // by default a transaction waits 50 s before it is rolled back and runs again
		// These replace the server's defaults.
		"sql_mode":         "'STRICT_TRANS_TABLES'",
		"sql_safe_updates": "0",
		"sql_select_limit": "18446744073709551615",
	}
	driver.Timeout = dialTimeout
	driver.Logger = &mysql.NopLogger{} // its errors say the same
	return driver, int(pool), cfg, r.Done()
}
