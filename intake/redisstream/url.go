package redisstream

import (
	"net/url"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/redisurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"redis", "rediss"} {
		intake.Register(scheme, open)
	}
}

// config says which stream to take from.
type config struct {
	client                  rueidis.ClientOption
	stream, group, consumer string
	declare, remove         bool
	idle                    time.Duration
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	cfg := config{client: redisurl.Client(r, u, o.TLS, o.Timeout), group: "tarry", idle: time.Minute}
	if cfg.consumer, _ = os.Hostname(); cfg.consumer == "" {
		cfg.consumer = "tarry"
	}
	if r.Text("stream", &cfg.stream); cfg.stream == "" {
		r.Fail("stream is missing, as in redis://127.0.0.1:6379/0?stream=delayed")
	}
	r.Text("group", &cfg.group)
	if r.Text("consumer", &cfg.consumer); cfg.group == "" || cfg.consumer == "" {
		r.Fail("group or consumer is empty; leave it out")
	}
	r.Bool("declare", &cfg.declare)
	r.Bool("delete", &cfg.remove)
	if r.Duration("idle", &cfg.idle); cfg.idle < time.Second {
		r.Fail("idle is at least 1s")
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return &source{cfg: cfg, opts: o}, nil
}
