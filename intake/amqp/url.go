package amqp

import (
	"net/url"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/storeurl"
)

func init() {
	for _, scheme := range []string{"amqp", "amqps"} {
		intake.Register(scheme, open)
	}
}

// The bounds of prefetch; quorum queues allow no more.
const (
	defaultPrefetch = 1000
	mostPrefetch    = 2000
)

// config says which queue to take from.
type config struct {
	queue, queueType       string
	declare                bool
	exchange, exchangeType string
	bind                   []string
	prefetch               int64
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	b := rabbit.Parse(r, u, o.TLS)
	b.Complete()
	cfg := config{queueType: "quorum", exchangeType: "topic", prefetch: defaultPrefetch}
	r.Text("queue", &cfg.queue)
	r.Bool("declare", &cfg.declare)
	r.Text("exchange", &cfg.exchange)
	typed := r.Text("type", &cfg.exchangeType)
	cfg.bind = r.List("bind")
	r.Text("queue_type", &cfg.queueType)
	r.Int("prefetch", &cfg.prefetch)
	cfg.check(r, typed)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return &source{cfg: cfg, broker: b, opts: o}, nil
}

// check checks a configuration, and fills in what is bound.
func (c *config) check(r *storeurl.Reader, typed bool) {
	const most = rabbit.MaxShort - len(refusedSuffix)
	if c.queue == "" || len(c.queue) > most {
		r.Fail("queue is the name of a RabbitMQ queue, of at most %d bytes", most)
	}
	if c.exchange == "" && (typed || len(c.bind) > 0) || len(c.exchange) > rabbit.MaxShort {
		r.Fail("type and bind need an exchange, whose name has at most 255 bytes")
	}
	if c.prefetch < 1 || c.prefetch > mostPrefetch {
		r.Fail("prefetch is 1 to %d", mostPrefetch)
	}
	if c.queueType != "quorum" && c.queueType != "classic" {
		r.Fail("queue_type is quorum or classic")
	}
	for _, key := range c.bind {
		if len(key) > rabbit.MaxShort {
			r.Fail("bind is a routing key, of at most 255 bytes")
		}
	}
	if len(c.bind) > 0 {
		return
	}
	switch c.exchangeType {
	case "topic":
		c.bind = []string{"#"}
	case "fanout", "headers":
		c.bind = []string{""}
	case "direct":
		if c.declare {
			r.Fail("with type=direct name each routing key with bind, or use type=topic, which takes all")
		}
	default:
		r.Fail("type is topic, direct, fanout or headers")
	}
}
