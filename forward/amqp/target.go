package amqp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
)

// Config is the destination of messages.
type Config struct {
	Addrs          []string    // host:port of brokers, at least one; the first that answers is used
	User, Password string      // default: guest
	Vhost          string      // default: /
	TLS            *tls.Config // nil: no TLS

	// Exchange is the exchange to publish to. Default: the default exchange.
	Exchange string

	// Key is the routing key. Default: the name of the message's queue.
	Key string
}

// Target publishes messages to an exchange. It is a forward.Target.
type Target struct {
	cfg  Config
	opts *forward.Options
	link *link.Link[*connection]
}

const maxShort = 255 // bytes of a name in AMQP

// New returns a target without connecting. Options may be nil.
func New(cfg Config, o *forward.Options) (*Target, error) {
	o, err := link.Options(o, "RabbitMQ")
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Addrs) == 0:
		return nil, link.Invalid("no RabbitMQ broker is given")
	case len(cfg.Exchange) > maxShort || len(cfg.Key) > maxShort || len(cfg.Vhost) > maxShort:
		return nil, link.Invalid("exchange, key and vhost have at most 255 bytes")
	}
	if cfg.User == "" {
		cfg.User, cfg.Password = "guest", "guest"
	}
	cfg.Vhost = cmp.Or(cfg.Vhost, "/")
	t := &Target{cfg: cfg, opts: o}
	t.link = link.New(o.Timeout, t.dial, (*connection).hangUp)
	return t, nil
}

// Send publishes a message and waits for the broker's confirm.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	key, msg := cmp.Or(t.cfg.Key, m.Queue), t.publishing(m)
	return t.link.Send(ctx, func(ctx context.Context, c *connection) error {
		if size, most := headerBytes(msg.Headers), c.amqp.Config.FrameSize; most > 0 && size+otherProperties > most {
			return tarry.Bury(link.Fault(fmt.Errorf("the headers have %d bytes, but the broker's frames %d", size, most), "raise RabbitMQ's frame_max"))
		}
		err := c.publish(ctx, t.cfg.Exchange, key, msg)
		if isClosed(err) && c.amqp.IsClosed() {
			t.link.GiveUp(c)
		}
		return t.fault(err)
	})
}

// otherProperties bounds the properties frame without headers: two short strings, two
// numbers, and their framing.
const otherProperties = 2*maxShort + 100

// Close waits for Sends in progress and closes the connection.
func (t *Target) Close() error { return t.link.Close() }

// publishing converts a message for RabbitMQ.
func (t *Target) publishing(m *tarry.Message[[]byte]) *amqp.Publishing {
	p := &amqp.Publishing{
		Headers:      t.headers(m),
		DeliveryMode: amqp.Persistent,
		MessageId:    m.ID.String(),
		Timestamp:    time.Now(),
		Body:         m.Body,
	}
	if ct := link.ContentType(m, t.opts); len(ct) <= maxShort {
		p.ContentType = ct
	}
	return p
}

func (t *Target) headers(m *tarry.Message[[]byte]) amqp.Table {
	all := forward.Metadata(m, t.opts)
	trusted := len(all) - len(t.opts.Headers) // from this index on
	table := make(amqp.Table, len(all))
	for i, h := range all {
		// RabbitMQ also routes a message to the queues in these lists.
		copies := h.Name == "CC" || h.Name == "BCC"
		if len(h.Name) > maxShort || link.IsContentType(h.Name) || copies && i < trusted {
			continue
		}
		switch before := table[h.Name].(type) {
		case nil:
			if table[h.Name] = h.Value; copies {
				table[h.Name] = []any{h.Value}
			}
		case []any:
			table[h.Name] = append(before, h.Value)
		default:
			table[h.Name] = []any{before, h.Value}
		}
	}
	return table
}

// headerBytes bounds the encoded size of a table.
func headerBytes(table amqp.Table) int {
	n := 4
	for name, v := range table {
		n += 1 + len(name) + 5
		switch v := v.(type) {
		case string:
			n += len(v)
		case []any:
			for _, each := range v {
				n += 5 + len(each.(string))
			}
		}
	}
	return n
}

// fault converts the error of a publish for Send.
func (t *Target) fault(err error) error {
	to := fmt.Sprintf("exchange %q", t.cfg.Exchange)
	is := func(target error) bool { return errors.Is(err, target) }
	if _, ok := errors.AsType[*tarry.Error](err); err == nil || ok {
		return err // it has a hint
	}
	if _, ok := errors.AsType[*errUnroutable](err); ok {
		return link.Fault(err, "no queue takes messages to "+to+" with this routing key; bind one")
	}
	if _, ok := errors.AsType[*errBlocked](err); ok {
		return link.Fault(err, "give RabbitMQ memory or disk, or have messages consumed")
	}
	switch {
	case is(errNacked):
		return link.Fault(err, "a queue bound to "+to+" is full or failing; see RabbitMQ's log")
	case hasCode(err, amqp.PreconditionFailed):
		return tarry.Bury(link.Fault(oneLine(err), "RabbitMQ will never accept this message"))
	case hasCode(err, amqp.NotFound):
		return link.Fault(oneLine(err), "make the exchange, or choose another")
	case hasCode(err, amqp.AccessRefused), is(amqp.ErrCredentials), is(amqp.ErrSASL):
		return link.Fault(oneLine(err), "check the user, the password, and that the user may write to "+to)
	case is(amqp.ErrVhost), hasCode(err, amqp.NotAllowed):
		return link.Fault(oneLine(err), "check the vhost, and that the user has rights in it")
	case is(context.DeadlineExceeded), is(context.Canceled):
		return link.Fault(err, link.Unknown)
	}
	return link.Fault(oneLine(err), "check that RabbitMQ runs at "+strings.Join(t.cfg.Addrs, ", ")+"; if the message was already sent, it may be duplicated")
}

// oneLine joins the lines of a broker's error.
func oneLine(err error) error {
	if text := err.Error(); strings.ContainsAny(text, "\r\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}
