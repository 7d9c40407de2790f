package amqp

import (
	"context"
	"fmt"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/storeurl"
)

const refusedSuffix = ".refused" // of the queue for what can never be pushed

// lookEvery is how often queue and exchange are looked for. Tests shorten it.
var lookEvery = 10 * time.Second

// source is a queue of RabbitMQ.
type source struct {
	cfg    config
	broker *rabbit.Broker
	opts   *intake.Options
}

// Connect connects, declares what it may, and says what it found.
func (s *source) Connect(ctx context.Context) (intake.Conn, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	c, err := s.broker.Dial(ctx)
	if err != nil {
		return nil, "", s.trouble(err, "")
	}
	r := &receiving{s: s, conn: c}
	q, err := s.look(c)
	if err == nil {
		r.refused, err = s.newRefused()
	}
	if err != nil {
		rabbit.HangUp(c)
		return nil, "", err
	}
	return r, fmt.Sprintf("the queue %q of RabbitMQ has %d messages ready and %d consumers", q.Name, q.Messages, q.Consumers), nil
}

// look declares what it may and returns the queue, or why messages do not come.
func (s *source) look(c *amqp.Connection) (amqp.Queue, error) {
	q, err := s.queue(c, s.cfg.queue, s.cfg.declare)
	if err != nil || s.cfg.exchange == "" {
		return q, s.trouble(err, "no_queue")
	}
	err = onChannel(c, func(ch *amqp.Channel) error {
		if !s.cfg.declare {
			return ch.ExchangeDeclarePassive(s.cfg.exchange, s.cfg.exchangeType, true, false, false, false, nil)
		}
		err := ch.ExchangeDeclare(s.cfg.exchange, s.cfg.exchangeType, true, false, false, false, nil)
		for _, key := range s.cfg.bind {
			if err == nil {
				err = ch.QueueBind(s.cfg.queue, key, s.cfg.exchange, false, nil)
			}
		}
		return err
	})
	return q, s.trouble(err, "no_exchange")
}

// queue returns a queue. If it is missing it may be declared; if it exists with other
// settings, these are the user's.
func (s *source) queue(c *amqp.Connection, name string, declare bool) (q amqp.Queue, err error) {
	err = onChannel(c, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if !declare || !rabbit.HasCode(err, amqp.NotFound) {
		return q, err
	}
	args := amqp.Table{amqp.QueueTypeArg: s.cfg.queueType}
	if version, _ := c.Properties["version"].(string); s.cfg.queueType == "quorum" && version >= "4" {
		args["x-delivery-limit"] = int32(-1) // the default of RabbitMQ 4 drops what came 20 times
	}
	err = onChannel(c, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	return q, err
}

// onChannel runs do on a channel of its own, since a failure closes it.
func onChannel(c *amqp.Connection, do func(*amqp.Channel) error) error {
	ch, err := c.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }() // it may be closed already
	return do(ch)
}

func init() {
	intake.Register("amqp", open)
	intake.Register("amqps", open)
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
	return &source{cfg: cfg, broker: b, opts: o}, r.Done()
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
