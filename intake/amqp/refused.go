package amqp

import (
	"context"
	"errors"
	"strings"
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

// refuseAll sets refused messages aside, then acks them. While that fails they stay unacked.
func (r *receiving) refuseAll() {
	for {
		select {
		case f := <-r.refusals:
			if !r.refuse(&f) {
				return
			}
			r.acks.settle(f.d.DeliveryTag)
		case <-r.ctx.Done():
			return
		}
	}
}

// refuse sets a message aside. It reports false if the connection was hung up before.
func (r *receiving) refuse(f *refusal) bool {
	for pause := (calls.Pause{Least: 100 * time.Millisecond, Most: lookEvery}); ; {
		err := r.setAside(r.ctx, f)
		if err == nil {
			r.report(func() { r.stuck = nil })
			return true
		}
		t := &intake.Trouble{Code: "refused_queue", Err: err, Hint: "refused messages wait for the queue " + r.s.cfg.queue + refusedSuffix}
		if errors.Is(err, rabbit.ErrBlocked) {
			t.Code, t.Hint = "blocked", hints["blocked"]
		}
		r.report(func() { r.stuck = t })
		if !pause.Wait(r.ctx) {
			return false
		}
	}
}

// setAside publishes a message to the queue for refused ones, as it came but for the reason,
// and without an expiration.
func (r *receiving) setAside(ctx context.Context, f *refusal) error {
	if _, err := r.s.queue(r.conn, r.s.cfg.queue+refusedSuffix, true); err != nil {
		return err
	}
	e := envelope(f.d)
	e.Properties.Expiration = ""
	e.Properties.Headers[refusedHeader] = reason(f.why)
	m := &tarry.Message[[]byte]{Body: f.d.Body}
	m.Headers = []tarry.MessageHeader{{Name: rabbit.EnvelopeHeader, Value: e.Text()}}
	return r.s.refused.Send(ctx, m)
}

// reason returns the text of why a message was refused, for a header.
func reason(why error) string {
	const most = 500
	text := why.Error()
	if e, ok := errors.AsType[*tarry.Error](why); ok && e.Hint != "" {
		text = e.Hint
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
