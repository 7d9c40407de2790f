package rabbitengine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
)

const (
	// parkedFor is how often parked messages are published again.
	parkedFor = 5 * time.Second
	// heldFor is how long messages that could not be published are held before a retry, so
	// that no process reads them again and again.
	heldFor = 30 * time.Second
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
		held, err := e.unpark(s)
		if err != nil && !s.over() && e.closing.Err() == nil {
			e.trouble.Note(staysParked, "", "queue", s.layout.parking(), "error", err)
		}
		if held != nil {
			time.AfterFunc(heldFor, func() { _ = held.Close() }) // it may be closed already
		}
		if duration.Await(s.ctx.Done(), parkedFor) {
			return
		}
	}
}

// unpark publishes messages that an exchange could not route, or that a policy expired. It
// first declares all that they need. It does nothing while the broker accepts no messages.
// It returns the channel that holds what cannot be published, until it is closed; nil: none.
func (e *Engine) unpark(s *session) (held *amqp.Channel, err error) {
	if s.blocked.Load() != nil {
		return nil, nil
	}
	n, err := s.stock(s.layout.parking())
	if err != nil && !notFound(err) || err == nil && n == 0 {
		return nil, err
	}
	if err := s.withChannel(s.layout.declare); err != nil {
		return nil, err
	}
	s.declareAgain()
	ch, err := s.in.Channel()
	if err != nil {
		return nil, err
	}
	defer func() {
		if held == nil {
			s.acks.wait(s.ctx.Done())
			_ = ch.Close() // it may be closed already
		}
	}()
	moved := 0
	var failed error
	for range n {
		d, there, err := ch.Get(s.layout.parking(), false)
		if err != nil {
			return nil, err
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
			held, failed = ch, err // continue with the others
			continue
		}
		moved++
	}
	if moved > 0 {
		e.trouble.Note(wasParked, "", "count", moved)
	}
	return held, failed
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
