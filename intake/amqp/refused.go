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
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// refusedHeader says why a message was refused.
const refusedHeader = "x-tarry-refused"

// refusal is a message to set aside.
type refusal struct {
	d   *amqp.Delivery
	why error
}

// newRefused returns a target that publishes to the queue for refused messages. It has a
// connection of its own: a broker that is short of memory reads no acks from a connection
// that publishes.
func newRefused(b *rabbit.Broker, queue string, o *intake.Options) (*target.Target, error) {
	return target.New(target.Config{
		Addrs: b.Addrs, User: b.User, Password: b.Password, Vhost: b.Vhost, TLS: b.TLS, Key: queue, Original: true,
	}, &forward.Options{Timeout: o.Timeout, Logger: o.Logger})
}

// refuseAll sets refused messages aside, then acks them. One that cannot be set aside stays
// unacked, and is tried again after the others.
func (r *receiving) refuseAll() {
	pause := calls.Pause{Least: 100 * time.Millisecond, Most: lookEvery}
	for {
		select {
		case f := <-r.refusals:
			if err := r.setAside(r.ctx, &f); err != nil {
				r.acks.keep(f.d.DeliveryTag)
				r.refusals <- f
				r.report(func() { r.stuck = r.s.stuck(err) })
				pause.Wait(r.ctx)
				continue
			}
			r.acks.settle(f.d.DeliveryTag)
			pause.Reset()
			if len(r.refusals) == 0 {
				r.report(func() { r.stuck = nil })
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// stuck returns why refused messages cannot be set aside.
func (s *source) stuck(err error) *intake.Trouble {
	if errors.Is(err, rabbit.ErrBlocked) {
		return &intake.Trouble{Code: "blocked", Err: err, Hint: hints["blocked"]}
	}
	return &intake.Trouble{Code: "refused_queue", Err: err, Hint: "refused messages wait for the queue " + s.cfg.queue + refusedSuffix}
}

// setAside publishes a message to the queue for refused ones, as it came but for the reason,
// and without an expiration.
func (r *receiving) setAside(ctx context.Context, f *refusal) error {
	if _, err := r.s.queue(r.conn, r.s.cfg.queue+refusedSuffix, true); err != nil {
		return err
	}
	e := envelope(f.d)
	e.Properties.Expiration = ""
	e.Properties.Headers[refusedHeader] = intake.Reason(f.why)
	if most := r.conn.Config.FrameSize; most > 0 && rabbit.Bytes(&e.Properties) > most {
		delete(e.Properties.Headers, refusedHeader) // it would have no room
	}
	m := &tarry.Message[[]byte]{Body: f.d.Body}
	m.Headers = []tarry.MessageHeader{{Name: rabbit.EnvelopeHeader, Value: e.Text()}}
	return r.s.refused.Send(ctx, m)
}
