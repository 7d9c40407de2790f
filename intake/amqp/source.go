package amqp

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
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
