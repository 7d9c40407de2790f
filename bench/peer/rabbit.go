package peer

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/bench/scenario"
)

// RabbitChannels is a connection to RabbitMQ, of which each client has a channel to itself, with
// confirms.
type RabbitChannels struct {
	conn     *amqp.Connection
	channels chan *amqp.Channel
}

// DialRabbit connects to RabbitMQ.
func DialRabbit(url string) (*RabbitChannels, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	s := &RabbitChannels{conn, make(chan *amqp.Channel, scenario.Clients)}
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
	return s, nil
}

// On calls do with a channel.
func (s *RabbitChannels) On(do func(*amqp.Channel) error) error {
	ch := <-s.channels
	defer func() { s.channels <- ch }()
	return do(ch)
}

// Consume hands the bodies of a queue's messages over, and acks them, until stop is called.
func (s *RabbitChannels) Consume(b *testing.B, queue string, started func(body []byte)) (stop func()) {
	ch, err := s.conn.Channel()
	scenario.Must(b, err)
	scenario.Must(b, ch.Qos(4*scenario.Clients, 0, false))
	messages, err := ch.Consume(queue, "", false, false, false, false, nil)
	scenario.Must(b, err)
	ended := make(chan error)
	go func() {
		var err error
		for m := range messages {
			started(m.Body)
			err = errors.Join(err, m.Ack(false))
		}
		ended <- err
	}()
	return func() {
		scenario.Must(b, ch.Close())
		scenario.Must(b, <-ended)
	}
}

// Close closes the connection.
func (s *RabbitChannels) Close() error { return s.conn.Close() }

// DelayQueue returns the arguments of a queue whose messages go to another once they expire.
func DelayQueue(to string) amqp.Table {
	return amqp.Table{
		amqp.QueueTypeArg:           amqp.QueueTypeQuorum,
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": to,
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish",
	}
}

// Confirmed waits until the broker has taken a message.
func Confirmed(ctx context.Context, c *amqp.DeferredConfirmation) error {
	acked, err := c.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the broker has refused a message")
	}
	return err
}

// rabbit is RabbitMQ by hand: a quorum queue whose messages have a TTL each, and are
// dead-lettered to the queue of the workers. Only the head of a queue expires.
type rabbit struct{ *RabbitChannels }

// RabbitTTL opens a vhost of RabbitMQ.
func RabbitTTL(url string) (scenario.System, error) {
	channels, err := DialRabbit(url)
	if err != nil {
		return nil, err
	}
	s := rabbit{channels}
	if err := errors.Join(s.declare(scenario.Queue), s.declare("warm")); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func rabbitDelay(queue string) string { return "delay." + queue }

func (s rabbit) declare(queue string) error {
	return s.On(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
		if err == nil {
			_, err = ch.QueueDeclare(rabbitDelay(queue), true, false, false, false, DelayQueue(queue))
		}
		return err
	})
}

func (s rabbit) Push(ctx context.Context, queue string, i int, due time.Time) error {
	return s.PushMany(ctx, queue, i, i+1, func(int) time.Time { return due })
}

// PushMany publishes all before it waits for the confirms.
func (s rabbit) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	return s.On(func(ch *amqp.Channel) error {
		confirms := make([]*amqp.DeferredConfirmation, to-from)
		for i := from; i < to; i++ {
			delay := (time.Until(due(i)) + time.Millisecond - 1) / time.Millisecond
			c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", rabbitDelay(queue), true, false,
				amqp.Publishing{DeliveryMode: amqp.Persistent, Expiration: strconv.Itoa(int(max(delay, 0))), Body: numbered(i)})
			if err != nil {
				return err
			}
			confirms[i-from] = c
		}
		for _, c := range confirms {
			if err := Confirmed(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s rabbit) Cancel(context.Context, string, int) error { return errors.ErrUnsupported }

func (s rabbit) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	return s.Consume(b, queues[0], func(body []byte) { started(number(body)) })
}

func (s rabbit) Empty(ctx context.Context, queue string) (bool, error) {
	n, err := s.Count(ctx, queue)
	return n == 0, err
}

// Count counts what the broker has ready; what waits for its ack is not in it.
func (s rabbit) Count(_ context.Context, queue string) (n int, err error) {
	err = s.On(func(ch *amqp.Channel) error {
		for _, name := range []string{queue, rabbitDelay(queue)} {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return err
			}
			n += q.Messages
		}
		return nil
	})
	return n, err
}
