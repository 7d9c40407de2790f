package rabbit

import (
	"context"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
)

// plain is RabbitMQ as one uses it by hand.
type plain struct {
	*peer.RabbitChannels
	ttl ttl
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
		channels, err := peer.DialRabbit(url)
		if err != nil {
			return nil, err
		}
		s := plain{channels, ttl}
		return s, s.On(s.declare)
	}
}

// declare makes the queues, which dead-letter to the one of the workers.
func (s plain) declare(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare(scenario.Queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	for _, d := range delays {
		args := peer.DelayQueue(scenario.Queue)
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

func (s plain) push(ctx context.Context, i int, delay time.Duration) error {
	queue, expiration := s.ttl(delay)
	return s.On(func(ch *amqp.Channel) error {
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, Expiration: expiration, Body: body(i)})
		if err != nil {
			return err
		}
		return peer.Confirmed(ctx, c)
	})
}

func (s plain) work(b *testing.B, arrived func(i int)) (stop func()) {
	return s.Consume(b, scenario.Queue, func(body []byte) { arrived(index(body)) })
}

func (s plain) close() error { return s.Close() }
