package amqp

import (
	"net/url"
	"strings"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "amqp", "amqps") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{User: u.User.Username(), Vhost: strings.TrimPrefix(u.Path, "/")}
	r.Text("exchange", &cfg.Exchange)
	r.Text("key", &cfg.Key)
	if r.Password("password_file", &cfg.Password) && cfg.User == "" {
		r.Fail("name the user, as in amqp://USER@host:5672/vhost")
	}
	port := "5672"
	if u.Scheme == "amqps" {
		port, cfg.TLS = "5671", link.TLS(r, o)
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		cfg.Addrs = append(cfg.Addrs, storeurl.Address(host, port))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is amqp://127.0.0.1:5672/vhost?exchange=orders&key=order.due")
	}
	return cfg, r.Done()
}
