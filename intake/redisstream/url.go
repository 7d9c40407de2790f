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

// source is a stream, read by a consumer of a group.
type source struct {
	client                  rueidis.ClientOption
	timeout                 time.Duration // of each answer
	stream, group, consumer string
	declare, remove         bool
	idle                    time.Duration
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	s := &source{client: redisurl.Client(r, u, o.TLS, o.Timeout), timeout: o.Timeout, group: "tarry", idle: time.Minute}
	if s.consumer, _ = os.Hostname(); s.consumer == "" {
		s.consumer = "tarry"
	}
	if r.Text("stream", &s.stream); s.stream == "" {
		r.Fail("stream is missing, as in redis://127.0.0.1:6379/0?stream=delayed")
	}
	r.Text("group", &s.group)
	if r.Text("consumer", &s.consumer); s.group == "" || s.consumer == "" {
		r.Fail("group or consumer is empty; leave it out")
	}
	r.Bool("declare", &s.declare)
	r.Bool("delete", &s.remove)
	if r.Duration("idle", &s.idle); s.idle < time.Second {
		r.Fail("idle is at least 1s")
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return s, nil
}
