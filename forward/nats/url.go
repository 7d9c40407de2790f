package nats

import (
	"net/url"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/natsurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "nats", "tls") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{}
	r.Text("subject", &cfg.Subject)
	r.Text("stream", &cfg.Stream)
	cfg.Servers, cfg.Connect = natsurl.Connect(r, u, o.TLS)
	return cfg, r.Done()
}
