package amqp

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	target "github.com/tarryhq/tarry/forward/amqp"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/wait"
)

// receiving is one connection from which messages are taken. It is an intake.Conn.
type receiving struct {
	s          *source
	conn       *amqp.Connection
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	closed     chan *amqp.Error
	cancelled  chan string
	refused    *target.Target // publishes to the queue for what is refused, on a connection of its own

	acked uint64    // how many messages
	last  time.Time // of the latest ack
}

const consumerTag = "tarry"

// consume begins to take messages from the queue.
func (s *source) consume(c *amqp.Connection) (*receiving, error) {
	ch, err := c.Channel()
	if err != nil {
		return nil, err
	}
	r := &receiving{s: s, conn: c, ch: ch,
		closed:    ch.NotifyClose(make(chan *amqp.Error, 1)),
		cancelled: ch.NotifyCancel(make(chan string, 1)),
	}
	if err := ch.Qos(int(s.cfg.prefetch), 0, false); err != nil {
		return nil, err
	}
	if r.deliveries, err = ch.Consume(s.cfg.queue, consumerTag, false, false, false, false, nil); err != nil {
		return nil, err
	}
	r.refused, err = s.newRefused()
	return r, err
}

// run hands over messages until ctx ends or the connection is lost.
func (r *receiving) run(ctx context.Context, to *intake.Sink) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var p probe
	defer p.close()
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
				err = p.look(ctx, r.s)
			}
			to.Report(err)
		case <-ctx.Done():
			return r.s.trouble(r.ch.Cancel(consumerTag, true), "")
		}
	}
}

// end returns why no messages come any more.
func (r *receiving) end() error {
	select {
	case _, ok := <-r.cancelled:
		if ok {
			if _, err := r.s.queue(r.conn, r.s.cfg.queue, false); err != nil {
				return r.s.trouble(err, "no_queue")
			}
			return &intake.Trouble{Code: "timeout", Err: errEnded, Hint: hints["timeout"]}
		}
	default:
	}
	err := <-r.closed
	if err == nil {
		err = amqp.ErrClosed
	}
	if err.Code == amqp.PreconditionFailed {
		return &intake.Trouble{Code: "timeout", Err: rabbit.OneLine(err), Hint: hints["timeout"]}
	}
	return r.s.trouble(err, "no_queue")
}

// Ack acks messages: all up to the last at once, unless one of them is not settled.
func (r *receiving) Ack(ms []*intake.Message) error {
	r.last = time.Now()
	tag := func(m *intake.Message) uint64 { return m.Receipt.(*amqp.Delivery).DeliveryTag }
	last := tag(ms[len(ms)-1])
	if r.acked += uint64(len(ms)); r.acked == last {
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

// hangUp closes the connection, once the broker's channel has passed on the acks.
func (r *receiving) hangUp() {
	if !r.ch.IsClosed() {
		wait.For(nil, time.Until(r.last.Add(passOn)))
	}
	_ = r.refused.Close() // nothing is being published
	rabbit.HangUp(r.conn)
}
