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

// rabbit is RabbitMQ by hand: a quorum queue whose messages have a TTL each, and are
// dead-lettered to the queue of the workers. Only the head of a queue expires.
type rabbit struct {
	conn     *amqp.Connection
	channels chan *amqp.Channel // a client has one to itself
}

// RabbitTTL opens a vhost of RabbitMQ.
func RabbitTTL(url string) (scenario.System, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	s := &rabbit{conn: conn, channels: make(chan *amqp.Channel, scenario.Clients)}
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
	if err := s.declare(scenario.Queue); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, s.declare("warm")
}

func rabbitDelay(queue string) string { return "delay." + queue }

func (s *rabbit) declare(queue string) error {
	ch := <-s.channels
	defer func() { s.channels <- ch }()
	if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}); err != nil {
		return err
	}
	_, err := ch.QueueDeclare(rabbitDelay(queue), true, false, false, false, amqp.Table{
		amqp.QueueTypeArg:           amqp.QueueTypeQuorum,
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": queue,
		"x-dead-letter-strategy":    "at-least-once",
		"x-overflow":                "reject-publish",
	})
	return err
}

func (s *rabbit) Push(ctx context.Context, queue string, i int, due time.Time) error {
	return s.PushMany(ctx, queue, i, i+1, func(int) time.Time { return due })
}

// PushMany publishes all before it waits for the confirms.
func (s *rabbit) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	ch := <-s.channels
	defer func() { s.channels <- ch }()
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
		acked, err := c.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !acked {
			return errors.New("the broker has refused a message")
		}
	}
	return nil
}

func (s *rabbit) Cancel(context.Context, string, int) error { return errors.ErrUnsupported }

func (s *rabbit) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	ch, err := s.conn.Channel()
	scenario.Must(b, err)
	scenario.Must(b, ch.Qos(4*scenario.Clients, 0, false))
	messages, err := ch.Consume(queues[0], "", false, false, false, false, nil)
	scenario.Must(b, err)
	ended := make(chan error)
	go func() {
		var err error
		for m := range messages {
			started(number(m.Body))
			err = errors.Join(err, m.Ack(false))
		}
		ended <- err
	}()
	return func() {
		scenario.Must(b, ch.Close())
		scenario.Must(b, <-ended)
	}
}

func (s *rabbit) Empty(ctx context.Context, queue string) (bool, error) {
	n, err := s.Count(ctx, queue)
	return n == 0, err
}

// Count counts what the broker has ready; what waits for its ack is not in it.
func (s *rabbit) Count(_ context.Context, queue string) (n int, err error) {
	ch := <-s.channels
	defer func() { s.channels <- ch }()
	for _, name := range []string{queue, rabbitDelay(queue)} {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			return 0, err
		}
		n += q.Messages
	}
	return n, nil
}

func (s *rabbit) Close() error { return s.conn.Close() }
