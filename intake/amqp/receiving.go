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

var errEnded = errors.New("RabbitMQ ended the delivery: messages were unacked for too long, or the queue has moved to another node")

// hints say what to do, by the code of a trouble.
var hints = map[string]string{
	intake.CodeUnreachable: "check that RabbitMQ runs at this address; the intake connects again by itself",
	intake.CodeCredentials: "check the user and the password in the source's URL",
	intake.CodeForbidden:   "give the user the right to read the queue, and with declare=true to configure it and its exchange",
	"vhost":                "check the vhost in the source's URL, and that the user has rights in it",
	"no_queue":             "make the queue, or let the intake with declare=true; a policy with expires deletes queues",
	"no_exchange":          "make the exchange, or let the intake with declare=true; until then no message reaches the queue",
	"mismatch":             "the broker has it with other settings; give the source the same, or declare=false",
	"locked":               "another connection uses the queue exclusively; end it, or take another queue",
	"timeout":              "the store took too long, and the messages come again; raise RabbitMQ's consumer_timeout if it was not down",
	"frame":                "the client cannot read what the broker sends; move the first message of the queue by other means",
	"blocked":              "give RabbitMQ memory or disk, or have messages consumed; until then nothing comes, and what is due waits",
	"refused_queue":        "refused messages wait for the queue that is named as this one, with " + refusedSuffix,
}

// replies are the codes of troubles by what the broker replies.
var replies = map[int]string{
	amqp.NotAllowed:         "vhost",
	amqp.AccessRefused:      intake.CodeForbidden,
	amqp.PreconditionFailed: "mismatch",
	amqp.ResourceLocked:     "locked",
	amqp.FrameError:         "frame",
	amqp.SyntaxError:        "frame",
}

func trouble(code string, err error) *intake.Trouble {
	return &intake.Trouble{Code: code, Err: rabbit.OneLine(err), Hint: hints[code]}
}

// trouble returns an error of the broker as a *intake.Trouble. missing is the code for what
// is not found.
func (s *source) trouble(err error, missing string) error {
	if err == nil {
		return nil
	}
	t := trouble(intake.CodeUnreachable, err)
	t.Hint = strings.Replace(t.Hint, "this address", strings.Join(s.broker.Addrs, ", "), 1)
	e, _ := errors.AsType[*amqp.Error](err)
	switch {
	case e == nil:
	case e == amqp.ErrVhost:
		return trouble("vhost", err)
	case e == amqp.ErrCredentials, e == amqp.ErrSASL:
		return trouble(intake.CodeCredentials, err)
	case e.Server && e.Code == amqp.NotFound:
		return trouble(missing, err)
	case e.Server && replies[e.Code] != "":
		return trouble(replies[e.Code], err)
	case !e.Server && strings.Contains(e.Reason, amqp.ErrSyntax.Reason):
		return trouble("frame", err)
	}
	return t
}
