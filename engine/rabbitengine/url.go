package rabbitengine

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"amqp", "amqps"} {
		engine.Register(scheme, func(ctx context.Context, u *url.URL) (engine.Engine, error) { return Open(ctx, u) })
	}
}

// Open opens the engine of a URL:
//
//	amqp://user:password@host:5672/vhost
//	amqps://user@host/?password_file=/run/secrets/rabbit
//	amqp://user@host/?addr=host2:5672&addr=host3:5672
//
// Options: addr, one of Config.Nodes, may be repeated; prefix, unit and queues as in
// Config; delays as in Config, separated by commas; heartbeat, default 5 s; password_file,
// which replaces a password in the URL; for amqps cacert, cert, key and server_name.
// Defaults: user guest with password guest, port 5672, or 5671 for amqps, and vhost /.
func Open(ctx context.Context, u *url.URL) (*Engine, error) {
	to, dial, cfg, err := parse(u)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &engine.Error{Op: "open", Err: err}
	}
	return open(to, dial, cfg)
}

func parse(u *url.URL) (to string, dial amqp.Config, cfg *Config, err error) {
	r := storeurl.New(u)
	cfg = new(Config)
	r.Text("prefix", &cfg.Prefix)
	r.Duration("unit", &cfg.Unit)
	var delays, queues string
	if r.Text("delays", &delays) {
		for _, text := range strings.Split(delays, ",") {
			d, err := duration.Parse(text)
			if err != nil {
				r.Fail("delays are durations separated by commas, such as 30s,15m,48h")
			}
			cfg.Delays = append(cfg.Delays, d)
		}
	}
	if r.Text("queues", &queues) {
		cfg.Queues = QueueType(queues)
	}
	cfg.Nodes = r.List("addr")
	r.Duration("heartbeat", &dial.Heartbeat)
	if dial.Heartbeat%time.Second != 0 {
		r.Fail("heartbeat is in whole seconds")
	}
	var password string
	given := r.Password("password_file", &password)
	tls := make(url.Values)
	if u.Scheme == "amqps" {
		for option, name := range map[string]string{"cacert": "cacertfile", "cert": "certfile", "key": "keyfile", "server_name": "server_name_indication"} {
			var value string
			if r.Text(option, &value) {
				tls.Set(name, value)
			}
		}
	}
	if u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(strings.TrimPrefix(u.EscapedPath(), "/"), "/@") {
		r.Fail("an example is amqp://user@127.0.0.1:5672/vhost; in a password, escape / ? # and @")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			r.Fail("the port is 1 to 65535")
		}
	}
	if _, complete := cfg.complete(); complete != nil {
		if e, ok := complete.(*engine.Error); ok {
			r.Fail("%s", e.Hint)
		}
	}
	if err := r.Done(); err != nil {
		return "", dial, nil, err
	}
	plain := *u
	plain.RawQuery = tls.Encode()
	if given {
		name := "guest"
		if u.User.Username() != "" {
			name = u.User.Username()
		}
		plain.User = url.UserPassword(name, password)
	}
	if _, err := amqp.ParseURI(plain.String()); err != nil {
		r.Fail("this is not a RabbitMQ URL; an example is amqp://user@127.0.0.1:5672/vhost")
		return "", dial, nil, r.Done()
	}
	return plain.String(), dial, cfg, nil
}
