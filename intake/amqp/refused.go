package amqp

import (
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	target "github.com/tarryhq/tarry/forward/amqp"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// refusedHeader says why a message was refused.
const refusedHeader = "x-tarry-refused"

// newRefused returns a target that publishes to the queue for refused messages. It has a
// connection of its own: a broker that is short of memory reads no acks from a connection
// that publishes.
func (s *source) newRefused() (*target.Target, error) {
	b := s.broker
	return target.New(target.Config{
		Addrs: b.Addrs, User: b.User, Password: b.Password, Vhost: b.Vhost, TLS: b.TLS, Key: s.cfg.queue + refusedSuffix, Original: true,
	}, &forward.Options{Timeout: s.opts.Timeout, Logger: s.opts.Logger})
}

// SetAside publishes a message to the queue for refused ones, as it came but for the reason,
// and without an expiration.
func (r *receiving) SetAside(m *intake.Message, reason string) error {
	err := r.publish(m.Receipt.(*amqp.Delivery), reason)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rabbit.ErrBlocked):
		return &intake.Trouble{Code: "blocked", Err: err, Hint: hints["blocked"]}
	}
	return &intake.Trouble{Code: "refused_queue", Err: err, Hint: "refused messages wait for the queue " + r.s.cfg.queue + refusedSuffix}
}

func (r *receiving) publish(d *amqp.Delivery, reason string) error {
	if _, err := r.s.queue(r.conn, r.s.cfg.queue+refusedSuffix, true); err != nil {
		return err
	}
	e := envelope(d)
	e.Properties.Expiration = ""
	e.Properties.Headers[refusedHeader] = reason
	if most := r.conn.Config.FrameSize; most > 0 && rabbit.Bytes(&e.Properties) > most {
		delete(e.Properties.Headers, refusedHeader) // it would have no room
	}
	m := &tarry.Message[[]byte]{Body: d.Body}
	m.Headers = []tarry.MessageHeader{{Name: rabbit.EnvelopeHeader, Value: e.Text()}}
	return r.refused.Send(context.Background(), m)
}
