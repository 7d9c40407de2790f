package amqp

import (
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "amqp", "amqps") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := new(Config)
	b := rabbit.Parse(r, u, o.TLS)
	cfg.Addrs, cfg.User, cfg.Password, cfg.Vhost, cfg.TLS = b.Addrs, b.User, b.Password, b.Vhost, b.TLS
	r.Text("exchange", &cfg.Exchange)
	r.Text("key", &cfg.Key)
	r.Bool("original", &cfg.Original)
	r.Bool("metadata", &cfg.Metadata)
	var exchanges string
	if r.Text("exchanges", &exchanges) {
		cfg.Exchanges = strings.Split(exchanges, ",")
	}
	return cfg, r.Done()
}
