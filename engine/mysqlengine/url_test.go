package mysqlengine

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestURL(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, []byte("s3cret\n"), 0o600))
	type named struct {
		addr, user, password, database string
		tls                            bool
		pool                           int
		cfg                            Config
	}
	for raw, want := range map[string]named{
		"mysql://u@h/db":                          {addr: "h:3306", user: "u", database: "db", pool: DefaultPool},
		"mysql://u:p%40%2F@[::1]:1/db":            {addr: "[::1]:1", user: "u", password: "p@/", database: "db", pool: DefaultPool},
		"mysql://u@h/db?password_file=" + secret:  {addr: "h:3306", user: "u", password: "s3cret", database: "db", pool: DefaultPool},
		"mysql://u@/db?tls=true&pool=3":           {addr: "127.0.0.1:3306", user: "u", database: "db", tls: true, pool: 3},
		"mysql://u@h/db?prefix=t_2&migrate=true":  {addr: "h:3306", user: "u", database: "db", pool: DefaultPool, cfg: Config{Prefix: "t_2", Migrate: true}},
		"mysql://u@h/db?pace=0":                   {addr: "h:3306", user: "u", database: "db", pool: DefaultPool, cfg: Config{Pace: -1}},
		"mysql://u@h/db?history=1h&history_max=7": {addr: "h:3306", user: "u", database: "db", pool: DefaultPool, cfg: Config{History: engine.History{Keep: time.Hour, Max: 7}}},
	} {
		u, err := url.Parse(raw)
		ok(t, err)
		driver, pool, cfg, err := parse(u)
		ok(t, err)
		got := named{driver.Addr, driver.User, driver.Passwd, driver.DBName, driver.TLS != nil, pool, *cfg}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, not %+v", raw, got, want)
		}
	}
	for _, raw := range []string{
		"mysql:db", "mysql://h", "mysql://h/a/b", "mysql://h/db?pool=1", "mysql://h/db?pool=1001", "mysql://h/db?tls=perhaps",
		"mysql://h/db?parseTime=true", "mysql://h/db?history=x", "mysql://h/db?ca_file=x", "mysql://h/db#x", "mysql://u:p@h/db?password_file=" + secret,
	} {
		u, err := url.Parse(raw)
		ok(t, err)
		if _, _, _, err := parse(u); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), mysqltest.Shared(t)
	_, err := tarry.Open(ctx, at, nil)
	if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "tarry migrate up") {
		t.Fatalf("without tables: %v", err)
	}
	c, err := tarry.Open(ctx, at+"?migrate=true", nil)
	ok(t, err)
	_, err = c.Push(ctx, "orders", []byte("here"), tarry.Key("42"))
	ok(t, err)
	ok(t, c.Close())
	c, err = tarry.Open(ctx, at, nil)
	ok(t, err)
	if !sqltest.Has(t, c, "42") {
		t.Error("it is not there")
	}
	ok(t, c.Close())
	for end, want := range map[string]error{
		"?prefix=a-b": tarry.ErrInvalid,
		"x":           tarry.ErrInvalid, // no such database
	} {
		if _, err := tarry.Open(ctx, at+end, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", end, err)
		}
	}
	if _, err := tarry.Open(ctx, mysqltest.As(t, at, "nobody"), nil); !errors.Is(err, tarry.ErrUnauthorized) {
		t.Errorf("for nobody: %v", err)
	}
	if _, err := tarry.Open(ctx, "mysql://root@127.0.0.1:1/db", nil); !errors.Is(err, tarry.ErrUnavailable) {
		t.Errorf("where nobody listens: %v", err)
	}
}

// A server that ends between the last statement of a migration and its version loses only the
// version: the next run goes through the statements again and keeps what is stored.
func TestMigrationCut(t *testing.T) {
	t.Parallel()
	ctx, at := t.Context(), mysqltest.Shared(t)
	c, err := tarry.Open(ctx, at+"?migrate=true", nil)
	ok(t, err)
	_, err = c.Push(ctx, "orders", []byte("here"), tarry.Key("42"))
	ok(t, err)
	ok(t, c.Close())
	run(t, mysqltest.Open(t, at), "DELETE FROM tarry_migrations")
	if _, err := tarry.Open(ctx, at, nil); !errors.Is(err, tarry.ErrInvalid) {
		t.Fatalf("without its version: %v", err)
	}
	c, err = tarry.Open(ctx, at+"?migrate=true", nil)
	ok(t, err)
	if !sqltest.Has(t, c, "42") {
		t.Error("it is not there")
	}
	ok(t, c.Close())
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{
		"5.7.44-log": true, "8.0.18": true, "8.0.19": false, "8.4.0": false, "9.1.0": false, "10.5.23-MariaDB": true, "5.5.5-10.5.23-MariaDB-log": true,
		"10.6.16-MariaDB": false, "5.5.5-10.11.6-MariaDB-0+deb12u1": false, "11.4.2-MariaDB": false, "unknown": false,
	} {
		if tooOld(version) != old {
			t.Errorf("%s", version)
		}
	}
}

// Connections of Open are READ COMMITTED by default, and the server ends idle ones.
func TestOwnConnections(t *testing.T) {
	t.Parallel()
	db := openURL(t, mysqltest.Shared(t)+"?migrate=true").Engine().(*Engine).store.db
	rows, err := db.QueryContext(t.Context(), "SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation', 'wait_timeout', 'idle_transaction_timeout')")
	ok(t, err)
	defer rows.Close()
	wants := map[string]string{"tx_isolation": "READ-COMMITTED", "transaction_isolation": "READ-COMMITTED", "wait_timeout": "120", "idle_transaction_timeout": "10"}
	n := 0
	for ; rows.Next(); n++ {
		var name, value string
		ok(t, rows.Scan(&name, &value))
		if value != wants[name] {
			t.Errorf("%s is %s, not %s", name, value, wants[name])
		}
	}
	if ok(t, rows.Err()); n < 2 {
		t.Errorf("there are %d of these settings", n)
	}
}
