package redisengine

import (
	"crypto/tls"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// named is what a URL says.
type named struct {
	addrs          []string
	user, password string
	database       int
	single, tls    bool

	master, sentinelUser, sentinelPassword string

	cfg Config
}

func namedBy(option rueidis.ClientOption, cfg *Config) named {
	return named{
		option.InitAddress, option.Username, option.Password, option.SelectDB, option.ForceSingleClient, option.TLSConfig != nil,
		option.Sentinel.MasterSet, option.Sentinel.Username, option.Sentinel.Password,
		*cfg,
	}
}

// file makes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestURL(t *testing.T) {
	t.Parallel()
	one, two := url.QueryEscape(file(t, "s3cret\n")), url.QueryEscape(file(t, "0ther\n"))
	for raw, want := range map[string]named{
		"redis://h:1":                      {addrs: []string{"h:1"}, single: true},
		"redis://h":                        {addrs: []string{"h:6379"}, single: true},
		"redis://:1":                       {addrs: []string{"127.0.0.1:1"}, single: true},
		"redis://[::1]:1":                  {addrs: []string{"[::1]:1"}, single: true},
		"redis://[::1]":                    {addrs: []string{"[::1]:6379"}, single: true},
		"redis://h/":                       {addrs: []string{"h:6379"}, single: true},
		"redis://h/7":                      {addrs: []string{"h:6379"}, single: true, database: 7},
		"redis://u:p%40%2F@h":              {addrs: []string{"h:6379"}, single: true, user: "u", password: "p@/"},
		"redis://:p@h":                     {addrs: []string{"h:6379"}, single: true, password: "p"},
		"redis://u@h?password_file=" + one: {addrs: []string{"h:6379"}, single: true, user: "u", password: "s3cret"},
		"redis://h?prefix=a:b":             {addrs: []string{"h:6379"}, single: true, cfg: Config{Prefix: "a:b"}},
		"redis://h?shards=256":             {addrs: []string{"h:6379"}, single: true, cfg: Config{Shards: MaxShards}},
		"redis://h?at_most_once=true":      {addrs: []string{"h:6379"}, single: true, cfg: Config{AtMostOnce: true}},
		"redis://h?at_most_once=0&evict=1": {addrs: []string{"h:6379"}, single: true, cfg: Config{Evict: true}},

		"rediss://h":                            {addrs: []string{"h:6379"}, single: true, tls: true},
		"rediss://u:p@h:1/2":                    {addrs: []string{"h:1"}, single: true, tls: true, user: "u", password: "p", database: 2},
		"redis+unix:///s/redis.sock":            {addrs: []string{"/s/redis.sock"}, single: true},
		"redis+unix://u:p@/a%20b?db=3&shards=2": {addrs: []string{"/a b"}, single: true, user: "u", password: "p", database: 3, cfg: Config{Shards: 2}},
		"redis+cluster://h":                     {addrs: []string{"h:6379"}},
		"redis+cluster://u:p@h/":                {addrs: []string{"h:6379"}, user: "u", password: "p"},
		"redis+cluster://h:1?addr=i&addr=[::1]:3&tls=true&shards=3": {
			addrs: []string{"h:1", "i:6379", "[::1]:3"}, tls: true, cfg: Config{Shards: 3},
		},
		"redis+cluster://h?tls=false": {addrs: []string{"h:6379"}},
		"redis+sentinel://h/m":        {addrs: []string{"h:26379"}, master: "m"},
		"redis+sentinel://u:p@h:1/m/3?addr=i:2&addr=j&tls=true": {
			addrs: []string{"h:1", "i:2", "j:26379"}, tls: true, user: "u", password: "p", database: 3, master: "m",
		},
		"redis+sentinel://h/m?password_file=" + one + "&sentinel_user=s&sentinel_password_file=" + two: {
			addrs: []string{"h:26379"}, password: "s3cret", master: "m", sentinelUser: "s", sentinelPassword: "0ther",
		},
	} {
		option, cfg, err := parse(params(t, raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := namedBy(option, cfg); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis read as %+v\nnot as     %+v", raw, got, want)
		}
	}
}

func TestURLThatWillNotDo(t *testing.T) {
	t.Parallel()
	secret := url.QueryEscape(file(t, "s3cret"))
	for raw, hint := range map[string]string{
		"redis:h":                              "an example is redis://",
		"redis://":                             "an example is redis://",
		"redis://?prefix=x":                    "an example is redis://",
		"redis://h#f":                          "an example is redis://",
		"http://h":                             "the scheme is redis, rediss, redis+unix, redis+cluster or redis+sentinel",
		"redis+unix://h/s":                     "an example is redis+unix://",
		"redis+unix://":                        "an example is redis+unix://",
		"redis+unix:s":                         "an example is redis",
		"redis+unix:///s?db=-1":                "db is a whole number",
		"redis+unix:///s?addr=x":               "for several use redis+cluster",
		"redis://h?db=1":                       `the scheme redis has no option "db"; it has `,
		"redis://h/x":                          "the database is a whole number",
		"redis://h/-1":                         "the database is a whole number",
		"redis://h/1/2":                        "the database is a whole number",
		"redis://h?addr=i":                     "for several use redis+cluster or redis+sentinel",
		"rediss://h?addr=i":                    "for several use redis+cluster or redis+sentinel",
		"redis://h?addr=":                      "for several use redis+cluster or redis+sentinel",
		"redis://h?shard=3":                    `the scheme redis has no option "shard"; it has `,
		"redis://h?tls=true":                   `the scheme redis has no option "tls"; it has `,
		"rediss://h?tls=true":                  `the scheme rediss has no option "tls"; it has `,
		"redis://h?ca_file=x":                  `the scheme redis has no option "ca_file"; it has `,
		"redis://h?sentinel_user=x":            `the scheme redis has no option "sentinel_user"; it has `,
		"redis+cluster://h?sentinel_user=x":    `the scheme redis+cluster has no option "sentinel_user"; it has `,
		"redis://h?shards=0":                   "a queue has 1 to 256 shards",
		"redis://h?shards=":                    "shards is a whole number",
		"redis://h?shards=abc":                 "shards is a whole number",
		"redis://h?shards=-1":                  "shards is a whole number",
		"redis://h?shards=1.5":                 "shards is a whole number",
		"redis://h?shards=2&shards=3":          "shards is given twice",
		"redis://h?prefix=a&prefix=b":          "prefix is given twice",
		"redis://h?pace=61s":                   "pace is at most 1s",
		"redis://h?pace=-1s":                   "pace is a duration",
		"redis://h?evict=perhaps":              "evict is true or false",
		"redis://h?at_most_once=2":             "at_most_once is true or false",
		"redis+cluster://h?tls=perhaps":        "tls is true or false",
		"redis://h?password_file=/nonexistent": "password_file: open /nonexistent",
		"redis://:p@h?password_file=" + secret: "one is enough",
		"redis+cluster://h/0":                  "Redis Cluster has no numbered databases",
		"redis+sentinel://h":                   "name the master",
		"redis+sentinel://h/":                  "name the master",
		"redis+sentinel://h/m/x":               "the database is a whole number",
		"redis+sentinel://h/m?sentinel_password_file=/nonexistent": "sentinel_password_file: open /nonexistent",
		"rediss://h?ca_file=/nonexistent":                          "ca_file: open /nonexistent",
		"rediss://h?ca_file=" + secret:                             "no certificate in PEM",
		"rediss://h?cert_file=" + secret:                           "cert_file and key_file",
		"rediss://h?key_file=" + secret:                            "cert_file and key_file",
	} {
		_, err := Open(t.Context(), params(t, raw))
		fails(t, err, engine.ErrInvalid, hint)
		if t.Failed() {
			t.Fatal(raw)
		}
	}
}

func TestConfigThatWillNotDo(t *testing.T) {
	t.Parallel()
	for query, hint := range map[string]string{
		"shards=257":                         "a queue has 1 to 256 shards",
		"prefix={x}":                         "without braces and spaces",
		"prefix=}":                           "without braces and spaces",
		"prefix=a b":                         "without braces and spaces",
		"prefix=a\nb":                        "without braces and spaces",
		"prefix=" + strings.Repeat("x", 101): "at most 100 bytes",
	} {
		_, cfg, err := parse(params(t, "redis://h", query))
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		// It is refused before anything is asked of the client.
		_, err = New(t.Context(), nil, cfg)
		fails(t, err, engine.ErrInvalid, hint)
	}
}

// TestURLKeepsItsPassword: a password that its owner has forgotten to escape ends up in
// other parts of the URL, none of which may be repeated then.
func TestURLKeepsItsPassword(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"redis://u:hunter2@h?shards=abc",
		"redis://u:hunter2@h/x",
		"redis+cluster://u:hunter2@h/0",
		"redis+sentinel://u:hunter2@h",
		"redis://u:1/hunter2@h:6379/0",
		"redis://u:1?hunter2@h:6379/0",
		"redis://u:1#hunter2@h:6379/0",
		"redis+cluster://u:1/hunter2@h:6379",
		"redis+sentinel://u:1/hunter2@h:6379/m/0",
	} {
		_, err := Open(t.Context(), params(t, raw))
		fails(t, err, engine.ErrInvalid)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error %q", raw, err)
		}
	}
}

// TestURLOfTLSNamesNoServer: a certificate is held against the name of the very node
// that shows it, and not against that of the first.
func TestURLOfTLSNamesNoServer(t *testing.T) {
	t.Parallel()
	option, _, err := parse(params(t, "redis+cluster://one.example?addr=two.example&tls=true"))
	if err != nil {
		t.Fatal(err)
	}
	if c := option.TLSConfig; c.ServerName != "" || c.InsecureSkipVerify || c.MinVersion < tls.VersionTLS12 {
		t.Errorf("the server's name is %q, unverified %v, TLS at least %x", c.ServerName, c.InsecureSkipVerify, c.MinVersion)
	}
}

func TestSchemesAreRegistered(t *testing.T) {
	t.Parallel()
	schemes := engine.Schemes()
	for _, scheme := range []string{"redis", "rediss", "redis+cluster", "redis+sentinel"} {
		if !slices.Contains(schemes, scheme) {
			t.Errorf("%s is not among %q", scheme, schemes)
		}
		_, err := engine.Open(t.Context(), scheme+"://h?nonsense=1")
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "nonsense") && scheme != "redis+sentinel" {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
