package amqp

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	target "github.com/tarryhq/tarry/forward/amqp"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// receiving is one connection from which messages are taken. It is an intake.Conn.
type receiving struct {
	s          *source
	conn       *amqp.Connection
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error
	refused    *target.Target // publishes to the queue for what is refused, on a connection of its own

	acked   uint64    // how many messages
	highest uint64    // the highest delivery tag of these
	last    time.Time // of the latest ack
}

const consumerTag = "tarry"

// consume begins to take messages from the queue.
func (r *receiving) consume() (err error) {
	if r.ch, err = r.conn.Channel(); err != nil {
		return err
	}
	r.closed = r.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := r.ch.Qos(int(r.s.cfg.prefetch), 0, false); err != nil {
		return err
	}
	r.deliveries, err = r.ch.Consume(r.s.cfg.queue, consumerTag, false, false, false, false, nil)
	return err
}

// Receive hands over messages until ctx ends or the connection is lost.
func (r *receiving) Receive(ctx context.Context, to *intake.Sink) error {
	if err := r.consume(); err != nil {
		return r.s.trouble(err, "no_queue")
	}
	to.Report(nil)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case d, ok := <-r.deliveries:
			if !ok {
				return r.end()
			}
			to.Take(message(&d))
		case <-look.C:
			_, err := r.s.look(r.conn)
			if err == nil {
				err = r.probe(ctx)
			}
			to.Report(err)
		case <-ctx.Done():
			return r.s.trouble(r.ch.Cancel(consumerTag, true), "")
		}
	}
}

// end returns why no messages come any more.
func (r *receiving) end() error {
	if !r.ch.IsClosed() { // the broker has cancelled the consumer
		if _, err := r.s.queue(r.conn, r.s.cfg.queue, false); err != nil {
			return r.s.trouble(err, "no_queue")
		}
		return trouble("timeout", errEnded)
	}
	err := <-r.closed
	switch {
	case err == nil:
		err = amqp.ErrClosed
	case err.Code == amqp.PreconditionFailed:
		return trouble("timeout", err)
	}
	return r.s.trouble(err, "no_queue")
}

// Ack acks messages: all up to the last at once, unless one of them is not settled.
func (r *receiving) Ack(ms []*intake.Message) error {
	r.last = time.Now()
	tag := func(m *intake.Message) uint64 { return m.Receipt.(*amqp.Delivery).DeliveryTag }
	last := tag(ms[len(ms)-1])
	r.acked, r.highest = r.acked+uint64(len(ms)), max(r.highest, last)
	if r.acked == r.highest {
		return r.s.trouble(r.ch.Ack(last, true), "")
	}
	for _, m := range ms {
		if err := r.ch.Ack(tag(m), false); err != nil {
			return r.s.trouble(err, "")
		}
	}
	return nil
}

// passOn is how long a channel may take to pass acks on to a quorum queue. What it holds when
// it closes is lost, and those messages come again.
const passOn = 500 * time.Millisecond

// Close closes the connection, once the broker's channel has passed on the acks.
func (r *receiving) Close() {
	if r.ch != nil && !r.ch.IsClosed() {
		time.Sleep(time.Until(r.last.Add(passOn)))
	}
	_ = r.refused.Close() // nothing is being published
	rabbit.HangUp(r.conn)
}
