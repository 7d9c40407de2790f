package rabbitengine

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// publishChannel is a channel for publishing, opened when needed.
type publishChannel struct {
	mu sync.Mutex
	line
	closes chan *amqp.Error // why the channel was closed
}

// channel returns an open channel in confirm mode.
func (x *publishChannel) channel(c *amqp.Connection) (*amqp.Channel, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if ch := x.open(); ch != nil {
		return ch, nil
	}
	ch, err := c.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, err
	}
	x.closes = ch.NotifyClose(make(chan *amqp.Error, 1))
	x.ch.Store(ch)
	return ch, nil
}

// errNacked says that the broker refused a message.
var errNacked = errors.New("RabbitMQ refused the message")

// large is the size from which a message gets its own channel. A broker closes a channel,
// with all that is in flight, when a message exceeds its max_message_size.
const large = 1 << 20

// sending is a message in flight to the broker, or the error if it could not be sent.
type sending struct {
	m       *engine.Info
	err     error
	ch      *amqp.Channel
	confirm *amqp.DeferredConfirmation // nil: it is not in flight
	began   time.Time
	of      *measured
}

// send starts to publish a message. An error says that the broker does not have it.
func (s *session) send(ctx context.Context, via *publishChannel, to route, m *engine.Info) (sending, error) {
	if why := s.blocked.Load(); why != nil {
		return sending{}, &engine.Error{Op: "push", Queue: m.Queue, Err: engine.ErrLimit,
			Hint: "RabbitMQ accepts no messages at present: " + *why + " (an alarm of the broker)"}
	}
	ch, err := via.channel(s.out)
	if err != nil {
		return sending{}, err
	}
	began := time.Now()
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, to.exchange, to.key, false, false, publishing(m))
	return sending{m: m, ch: ch, confirm: confirm, began: began, of: s.measured}, err
}

// alone publishes a large message on its own channel and waits for the confirm.
func (s *session) alone(ctx context.Context, to route, m *engine.Info) (sent bool, err error) {
	var own publishChannel
	x, err := s.send(ctx, &own, to, m)
	ch := own.ch.Load()
	if ch == nil {
		return false, err
	}
	defer func() {
		go func() { _ = ch.Close() }() // blocks while the broker does not read
	}()
	if sent = err == nil; sent {
		err = x.confirmed(ctx)
	}
	if ch.IsClosed() {
		if why := <-own.closes; why != nil && why.Code == amqp.PreconditionFailed {
			return false, &engine.Error{Queue: m.Queue, Err: engine.ErrTooLarge,
				Hint: "the message exceeds RabbitMQ's max_message_size; raise it, or push a reference to the data: " + said(why)}
		}
	}
	return sent, err
}

// confirmed waits for the broker's confirm.
func (x *sending) confirmed(ctx context.Context) error {
	acked, err := x.confirm.WaitContext(ctx)
	switch {
	case err != nil:
		x.of.doubtful.Add(1)
		return err
	case acked:
		x.of.confirms.Since(x.began)
		return nil
	case x.ch.IsClosed():
		x.of.doubtful.Add(1)
		return errNotConfirmed
	}
	x.of.nacked.Add(1)
	return errNacked
}

// refused converts an error of send or confirmed for the caller.
func refused(op string, m *engine.Info, err error, sent bool) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNacked):
		return &engine.Error{Op: op, Queue: m.Queue, Err: engine.ErrUnavailable, Hint: "RabbitMQ refused the message, as it does without a majority of its nodes; try again"}
	case sent:
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			err = engine.ErrUnavailable
		}
		return &engine.Error{Op: op, Queue: m.Queue, Err: err, Hint: unknown}
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		e.Op = op
		return e
	}
	return fault(op, m.Queue, err)
}
