package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
)

const (
	// parkedFor is how often parked messages are published again.
	parkedFor = 5 * time.Second
	// parkedAgain is the pause after some could not be published.
	parkedAgain = 30 * time.Second
)

var (
	wasParked = notify.Trouble{Level: slog.LevelWarn,
		Text: "RabbitMQ had parked messages, which were published again: a queue was deleted, or a policy limits how long it keeps messages or how often it delivers them"}
	staysParked = notify.Trouble{Level: slog.LevelWarn, Text: "messages that RabbitMQ could not route cannot be published again"}
)

// attend checks for parked messages, and for deleted queues, until the session ends.
func (e *Engine) attend(s *session) {
	for {
		s.missQueues(e.cfg.Logger)
		pause := parkedFor
		if err := e.unpark(s); err != nil && !s.over() && e.closing.Err() == nil {
			e.trouble.Note(staysParked, "", "queue", s.layout.parking(), "error", err)
			pause = parkedAgain
		}
		later := time.NewTimer(pause)
		select {
		case <-later.C:
		case <-s.ended:
			later.Stop()
			return
		}
	}
}

// unpark publishes messages that an exchange could not route, or that a policy expired. It
// first declares all that they need. It does nothing while the broker accepts no messages.
func (e *Engine) unpark(s *session) error {
	if s.blocked.Load() != nil {
		return nil
	}
	n, err := s.stock(s.layout.parking())
	if err != nil && !notFound(err) || err == nil && n == 0 {
		return err
	}
	if err := s.withChannel(s.layout.declare); err != nil {
		return err
	}
	s.declareAgain()
	moved := 0
	err = s.withChannel(func(ch *amqp.Channel) (failed error) { // closing it returns the messages that stay
		defer s.acks.wait(s.ended)
		for range n {
			d, there, err := ch.Get(s.layout.parking(), false)
			if err != nil {
				return err
			}
			if !there || !e.gate.TryEnter() {
				break
			}
			if err = e.post(s, &d); err == nil {
				err = d.Ack(false)
				s.acks.sent()
			}
			e.gate.Leave()
			if err != nil {
				failed = err // continue with the others
				continue
			}
			moved++
		}
		return failed
	})
	if moved > 0 {
		e.trouble.Note(wasParked, "", "count", moved)
	}
	return err
}

// post publishes a parked message.
func (e *Engine) post(s *session, d *amqp.Delivery) error {
	queue, _ := d.Headers[headerQueue].(string)
	if engine.CheckQueue("lease", queue) != nil {
		return errors.New("a message is not from tarry")
	}
	m := received(d, queue, time.Now(), e.ids.next)
	m.Attempt = attempts(d)
	if givenUp(d) {
		m.Attempt++
	}
	ctx, out := context.Background(), posting{op: "push", s: s}
	if m.Died.IsZero() {
		out.put(ctx, m)
	} else {
		out.bury(ctx, m)
	}
	return out.confirm(ctx)[0]
}
