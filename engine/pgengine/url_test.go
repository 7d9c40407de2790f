package pgengine

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func parsed(t testing.TB, raw string) (*target, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parse(u)
}

func TestURL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	ok(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	to, err := parsed(t, "postgres://ann@h1:1,h2:2/db?schema=x&pool=3&migrate=true&history=24h&history_max=7&pace=2ms&connect_timeout=7&statement_timeout=9&default_query_exec_mode=exec&password_file="+url.QueryEscape(file))
	ok(t, err)
	c := to.pool.ConnConfig
	if to.cfg.Schema != "x" || to.pool.MaxConns != 3 || !to.cfg.Migrate || c.Password != "s3cret" || c.Host != "h1" || len(c.Fallbacks) == 0 ||
		c.ConnectTimeout != 7*time.Second || c.RuntimeParams["statement_timeout"] != "9" || c.RuntimeParams["application_name"] != "tarry" || to.cfg.History != (engine.History{Keep: 24 * time.Hour, Max: 7}) || to.cfg.Pace != 2*time.Millisecond {
		t.Errorf("it is read as %+v with %+v", to, c)
	}
	to, err = parsed(t, "postgres://h/db?application_name=mine")
	ok(t, err)
	if to.pool.MaxConns != DefaultPool || to.pool.ConnConfig.RuntimeParams["application_name"] != "mine" {
		t.Errorf("it is read as %+v", to.pool)
	}
	to, err = parsed(t, "postgres://h/db?pool_max_conns=5")
	ok(t, err)
	if to.pool.MaxConns != 5 {
		t.Errorf("the pool has %d", to.pool.MaxConns)
	}
}

func TestURLsThatWillNotDo(t *testing.T) {
	t.Parallel()
	for raw, hint := range map[string]string{
		"postgres://h/db?pool=0":                                 "at least 1",
		"postgres://h/db?pace=2s":                                "pace is at most 1s",
		"postgres://h/db?pool=x":                                 "pool is a whole number",
		"postgres://h/db?migrate=perhaps":                        "migrate is true or false",
		"postgres://h/db?sslmode=hunter2":                        "what is given as sslmode will not do",
		"postgres://h/db?sslmode=disable&pool_max_conns=hunter2": "what is given as pool_max_conns",
		"postgres://h/db?default_query_exec_mode=hunter2":        "what is given as default_query_exec_mode",
		"postgres://h/db?sslrootcert=/hunter2":                   "what is given as sslrootcert",
		"postgres://u:p@h/db?password_file=/etc/hostname":        "one is enough",
		"postgres://u:1/hunter2@h/db":                            "escape",
		"postgres://u:1?hunter2@h/db":                            "escape",
		"postgres://u:1#hunter2@h/db":                            "escape",
		"postgres:h/db":                                          "an example is",
	} {
		_, err := parsed(t, raw)
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzURL(f *testing.F) {
	f.Add("u:hunter2!@h:1/db", "sslmode=x")
	f.Add("u:1/hunter2!@h", "a=b&pool=1")
	f.Fuzz(func(t *testing.T, rest, query string) {
		const secret = "hunter2!"
		u, err := url.Parse("postgres://u:" + secret + rest + "?password=" + secret + "&" + query)
		if err != nil || strings.Contains(query, "service") || strings.Contains(query, "%") {
			return
		}
		if _, err := parse(u); err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(query, secret) {
			t.Errorf("%s: %v", u, err)
		}
	})
}
