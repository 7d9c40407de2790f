package nats

import (
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() { link.Register(parse, New, "nats", "tls") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{}
	r.Text("subject", &cfg.Subject)
	r.Text("stream", &cfg.Stream)
	var creds, password string
	if r.Text("creds_file", &creds) {
		cfg.Connect = append(cfg.Connect, nats.UserCredentials(creds))
	}
	switch r.Password("password_file", &password); {
	case creds != "" && (password != "" || u.User != nil):
		r.Fail("give a user or a creds_file, not both")
	case password != "":
		cfg.Connect = append(cfg.Connect, nats.UserInfo(u.User.Username(), password))
	case u.User.Username() != "":
		cfg.Connect = append(cfg.Connect, nats.Token(u.User.Username()))
	}
	if u.Scheme == "tls" {
		cfg.Connect = append(cfg.Connect, nats.Secure(r.TLSOver(o.TLS)))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		cfg.Servers = append(cfg.Servers, "nats://"+storeurl.Address(host, "4222"))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		r.Fail("an example is nats://127.0.0.1:4222?subject=orders.due")
	}
	return cfg, r.Done()
}
