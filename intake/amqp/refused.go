package amqp

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	target "github.com/tarryhq/tarry/forward/amqp"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// refusedHeader says why a message was refused.
const refusedHeader = "x-tarry-refused"

// newRefused returns a target that publishes to the queue that is a message's routing key. It
// has a connection of its own: a broker that is short of memory reads no acks from a
// connection that publishes.
func (s *source) newRefused() (*target.Target, error) {
	b := s.broker
	return target.New(target.Config{
		Addrs: b.Addrs, User: b.User, Password: b.Password, Vhost: b.Vhost, TLS: b.TLS, Original: true,
	}, &forward.Options{Timeout: s.opts.Timeout, Logger: s.opts.Logger})
}

func (r *receiving) publish(ctx context.Context, e *rabbit.Envelope, body []byte) error {
	m := &tarry.Message[[]byte]{Body: body}
	m.Headers = []tarry.MessageHeader{{Name: rabbit.EnvelopeHeader, Value: e.Text()}}
	return r.refused.Send(ctx, m)
}

// probe returns an error if the broker accepts no messages. It says so only to a connection
// that publishes: this publishes an empty message that no queue takes.
func (r *receiving) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := r.publish(ctx, &rabbit.Envelope{}, nil); errors.Is(err, rabbit.ErrBlocked) {
		return trouble("blocked", err)
	}
	return nil
}

// SetAside publishes a message to the queue for refused ones, as it came but for the reason,
// and without an expiration.
func (r *receiving) SetAside(m *intake.Message, reason string) error {
	d := m.Receipt.(*amqp.Delivery)
	e := envelope(d)
	e.Key = r.s.cfg.queue + refusedSuffix
	e.Properties.Expiration = ""
	e.Properties.Headers[refusedHeader] = reason
	if most := r.conn.Config.FrameSize; most > 0 && rabbit.Bytes(&e.Properties) > most {
		delete(e.Properties.Headers, refusedHeader) // it would have no room
	}
	_, err := r.s.queue(r.conn, e.Key, true)
	if err == nil {
		err = r.publish(context.Background(), e, d.Body)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rabbit.ErrBlocked):
		return trouble("blocked", err)
	}
	return trouble("refused_queue", err)
}
