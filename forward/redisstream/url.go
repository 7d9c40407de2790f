package redisstream

import (
	"math"
	"net"
	"net/url"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "redis", "rediss") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{Client: rueidis.ClientOption{
		ForceSingleClient: true,
		Dialer:            net.Dialer{Timeout: o.Timeout},
		ClientName:        "tarry",
		PipelineMultiplex: -1, // one connection carries everything
	}}
	if r.Text("stream", &cfg.Stream) && cfg.Stream == "" {
		r.Fail("stream is empty; leave it out for the name of the queue")
	}
	r.Int("maxlen", &cfg.MaxLen)
	cfg.Client.Username = u.User.Username()
	r.Password("password_file", &cfg.Client.Password)
	if u.Scheme == "rediss" {
		cfg.Client.TLSConfig = r.TLSOver(o.TLS)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		var n int64
		r.Number("the database", path, &n)
		cfg.Client.SelectDB = int(min(n, math.MaxInt32))
	}
	cfg.Client.InitAddress = []string{storeurl.Address(u.Host, "6379")}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is redis://127.0.0.1:6379/0?stream=orders")
	}
	return cfg, r.Done()
}
