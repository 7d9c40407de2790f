package nats

import (
	"net/url"
	"time"

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

// source is a stream, read by a durable consumer.
type source struct {
	servers                  []string // without passwords
	connect                  []nats.Option
	stream, durable, subject string
	declare                  bool
	prefetch                 int64
	timeout                  time.Duration // of each answer
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	s := &source{durable: "tarry", prefetch: 1000, timeout: o.Timeout}
	s.servers, s.connect = natsurl.Connect(r, u, o.TLS)
	if r.Text("stream", &s.stream); s.stream == "" {
		r.Fail("stream is missing, as in nats://127.0.0.1:4222?stream=DELAYED")
	}
	if r.Text("durable", &s.durable); s.durable == "" {
		r.Fail("durable is empty; leave it out for tarry")
	}
	r.Bool("declare", &s.declare)
	if r.Text("subject", &s.subject) && !s.declare {
		r.Fail("subject is for a stream that is made, with declare=true")
	}
	if r.Int("prefetch", &s.prefetch); s.prefetch < 1 || s.prefetch > 10_000 {
		r.Fail("prefetch is 1 to 10000")
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return s, nil
}
