package storeurl

import (
	"errors"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func reader(t testing.TB, raw string) *Reader {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return New(u)
}

// config is what options may set.
type config struct {
	prefix, secret string
	evict          bool
	max, cache     int64
	timeout        time.Duration
}

func read(r *Reader) (c config, err error) {
	r.Text("prefix", &c.prefix)
	r.Bool("evict", &c.evict)
	r.Int("max", &c.max)
	r.Bytes("cache", &c.cache)
	r.Duration("timeout", &c.timeout)
	r.Password("password_file", &c.secret)
	return c, r.Done()
}

func secretFile(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOptions(t *testing.T) {
	t.Parallel()
	file := url.QueryEscape(secretFile(t, "s3 cret\n"))
	for raw, want := range map[string]config{
		"x:":                                    {},
		"x:?":                                   {},
		"x:?prefix=":                            {},
		"x:?prefix=a%26b&evict=true&max=7":      {prefix: "a&b", evict: true, max: 7},
		"x:?evict=0&max=0":                      {},
		"x:?cache=65536":                        {cache: 65536},
		"x:?cache=7B":                           {cache: 7},
		"x:?cache=64KiB":                        {cache: 64 << 10},
		"x:?cache=256M":                         {cache: 256 << 20},
		"x:?cache=64kB":                         {cache: 64000},
		"x:?cache=3MB":                          {cache: 3e6},
		"x:?cache=2GiB":                         {cache: 2 << 30},
		"x:?cache=8388607TiB":                   {cache: 8388607 << 40},
		"x:?timeout=1m30s":                      {timeout: 90 * time.Second},
		"x:?timeout=1d12h":                      {timeout: 36 * time.Hour},
		"x://u:p%40@h":                          {secret: "p@"},
		"x://u:@h":                              {},
		"x://u@h?password_file=" + file:         {secret: "s3 cret"},
		"x:?max=9223372036854775807&timeout=0s": {max: math.MaxInt64},
	} {
		if got, err := read(reader(t, raw)); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v, not as %+v", raw, got, err, want)
		}
	}
}

func TestOptionsThatWillNotDo(t *testing.T) {
	t.Parallel()
	for raw, hint := range map[string]string{
		"x:?cash=64KiB":                        `the scheme x has no option "cash"; it has cache, evict, max, password_file, prefix, timeout`,
		"x:?b=1&a=2":                           `no option "a"`,
		"x:?prefix=a&prefix=b":                 "prefix is given twice",
		"x:?evict=perhaps":                     "evict is true or false",
		"x:?max=-1":                            "max is a whole number",
		"x:?max=+1":                            "max is a whole number",
		"x:?max=":                              "max is a whole number",
		"x:?max=9223372036854775808":           "max is a whole number",
		"x:?cache=64k":                         "cache is a size such as",
		"x:?cache=-1":                          "cache is a size such as",
		"x:?cache=1.5GiB":                      "cache is a size such as",
		"x:?cache=MiB":                         "cache is a size such as",
		"x:?cache=8388608TiB":                  "cache is a size such as",
		"x:?timeout=30":                        "timeout is a duration such as",
		"x:?timeout=-1s":                       "timeout is a duration such as",
		"x:?timeout=999999999999h":             "timeout is out of range: a duration is at most 106751d",
		"x:?password_file=/nowhere":            "password_file: open /nowhere",
		"x:?password_file=/dev/null":           "password_file: the file is empty",
		"x://:p@h?password_file=/etc/hostname": "one is enough",
		"x:?a;b":                               "percent-encoded",
		"x:?max=%zz":                           "percent-encoded",
	} {
		_, err := read(reader(t, raw))
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := reader(t, "mem:?a=b").Done(); err == nil || !strings.Contains(err.Error(), `takes no options, so no "a"`) {
		t.Error(err)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"disk:data": "data", "disk:a/b%3Fc%23d?max=1": "a/b?c#d", "disk:///var/lib": "/var/lib", "disk:/var/lib": "/var/lib",
		"disk:": "", "disk://host/x": "", "disk://u@/x": "", "disk:x#y": "", "disk:?max=1": "",
	} {
		r := reader(t, raw)
		var max int64
		r.Int("max", &max)
		path := r.Path()
		if err := r.Done(); (err == nil) != (want != "") || err == nil && path != want {
			t.Errorf("%s: %q, %v", raw, path, err)
		}
	}
}

func TestBare(t *testing.T) {
	t.Parallel()
	for raw, ok := range map[string]bool{
		"mem:": true, "mem:?prefix=x": true, "mem:x": false, "mem://h": false, "mem:///p": false, "mem:#f": false, "mem://u@": false,
	} {
		r := reader(t, raw)
		r.Bare("mem:")
		var prefix string
		r.Text("prefix", &prefix)
		if err := r.Done(); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// FuzzOptions: a value never shows in an error, not even as a part of another option.
func FuzzOptions(f *testing.F) {
	f.Add("max", "hunter2!")
	f.Add("cache", "8388608TiB")
	f.Add("u:1?hunter2!", "@h:6379")
	f.Fuzz(func(t *testing.T, name, value string) {
		if name == "password_file" {
			return // the path is shown
		}
		const secret = "hunter2!"
		query := url.QueryEscape(name) + "=" + url.QueryEscape(value+secret)
		c, err := read(New(&url.URL{Scheme: "x", RawQuery: query}))
		if err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(name, secret) {
			t.Errorf("%s: %v", query, err)
		}
		if c.max < 0 || c.cache < 0 || c.timeout < 0 {
			t.Errorf("%s is read as %+v", query, c)
		}
	})
}

func FuzzBytes(f *testing.F) {
	for _, s := range []string{"1", "64KiB", "9223372036854775807B", "1TiB", "MiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseBytes(s); err == nil && n < 0 {
			t.Errorf("%q is read as %d", s, n)
		}
	})
}
