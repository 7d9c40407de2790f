package nats

import (
	"net/url"

	"github.com/nats-io/nats.go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/natsurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"nats", "tls"} {
		intake.Register(scheme, open)
	}
}

// config says which stream to take from.
type config struct {
	servers                  []string // without passwords
	connect                  []nats.Option
	stream, durable, subject string
	declare                  bool
	prefetch                 int64
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	cfg := config{durable: "tarry", prefetch: 1000}
	cfg.servers, cfg.connect = natsurl.Connect(r, u, o.TLS)
	if r.Text("stream", &cfg.stream); cfg.stream == "" {
		r.Fail("stream is missing, as in nats://127.0.0.1:4222?stream=DELAYED")
	}
	if r.Text("durable", &cfg.durable); cfg.durable == "" {
		r.Fail("durable is empty; leave it out for tarry")
	}
	r.Bool("declare", &cfg.declare)
	if r.Text("subject", &cfg.subject) && !cfg.declare {
		r.Fail("subject is for a stream that is made, with declare=true")
	}
	if r.Int("prefetch", &cfg.prefetch); cfg.prefetch < 1 || cfg.prefetch > 10_000 {
		r.Fail("prefetch is 1 to 10000")
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return &source{cfg: cfg, opts: o}, nil
}
