package redisstream

import (
	"net/url"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/redisurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "redis", "rediss") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{Client: redisurl.Client(r, u, o.TLS, o.Timeout)}
	if r.Text("stream", &cfg.Stream) && cfg.Stream == "" {
		r.Fail("stream is empty; leave it out for the name of the queue")
	}
	r.Int("maxlen", &cfg.MaxLen)
	return cfg, r.Done()
}
