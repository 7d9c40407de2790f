package rabbit

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/bench/scenario"
)

// plain is RabbitMQ as one uses it by hand.
type plain struct {
	conn     *amqp.Connection
	channels chan *amqp.Channel // a client has one to itself
	ttl      ttl
}

// ttl says which queue holds a message back, and by which TTL of its own; "": by the queue's.
type ttl func(delay time.Duration) (queue, expiration string)

// queuePerDelay is the way that cannot take any delay.
func queuePerDelay(delay time.Duration) (queue, expiration string) {
	return "delay." + delay.String(), ""
}

// messageTTL is the way in which only the head of a queue expires.
func messageTTL(delay time.Duration) (queue, expiration string) {
	return "delay", strconv.FormatInt(delay.Milliseconds(), 10)
}

// delays are those that are measured.
var delays = []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, burstDelay, time.Minute, 48 * time.Hour}

func openPlain(ttl ttl) func(context.Context, string) (system, error) {
	return func(_ context.Context, url string) (system, error) {
		conn, err := amqp.Dial(url)
		if err != nil {
			return nil, err
		}
		s := &plain{conn, make(chan *amqp.Channel, scenario.Clients), ttl}
		for range scenario.Clients {
			ch, err := conn.Channel()
			if err == nil {
				err = ch.Confirm(false)
			}
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			s.channels <- ch
		}
		return s, s.declare()
	}
}

// declare makes the queues, which dead-letter to the one of the workers.
func (s *plain) declare() error {
	ch := <-s.channels
	defer func() { s.channels <- ch }()
	_, err := ch.QueueDeclare(scenario.Queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	for _, d := range delays {
		args := amqp.Table{
			amqp.QueueTypeArg:           amqp.QueueTypeQuorum,
			"x-dead-letter-exchange":    "",
			"x-dead-letter-routing-key": scenario.Queue,
			"x-dead-letter-strategy":    "at-least-once",
			"x-overflow":                "reject-publish",
		}
		name, each := s.ttl(d)
		if each == "" {
			args["x-message-ttl"] = d.Milliseconds()
		}
		if err == nil {
			_, err = ch.QueueDeclare(name, true, false, false, false, args)
		}
	}
	return err
}

func (s *plain) push(ctx context.Context, i int, delay time.Duration) error {
	queue, expiration := s.ttl(delay)
	ch := <-s.channels
	defer func() { s.channels <- ch }()
	c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Expiration: expiration, Body: body(i)})
	if err != nil {
		return err
	}
	acked, err := c.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the broker has refused a message")
	}
	return err
}

func (s *plain) work(b *testing.B, arrived func(i int)) (stop func()) {
	ch, err := s.conn.Channel()
	scenario.Must(b, err)
	scenario.Must(b, ch.Qos(4*scenario.Clients, 0, false))
	messages, err := ch.Consume(scenario.Queue, "", false, false, false, false, nil)
	scenario.Must(b, err)
	ended := make(chan error)
	go func() {
		var err error
		for m := range messages {
			arrived(index(m.Body))
			err = errors.Join(err, m.Ack(false))
		}
		ended <- err
	}()
	return func() {
		scenario.Must(b, ch.Close())
		scenario.Must(b, <-ended)
	}
}

func (s *plain) close() error { return s.conn.Close() }
