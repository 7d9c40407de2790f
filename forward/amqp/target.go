package amqp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/storeurl"
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

	// Original publishes a message that an intake of AMQP took as it was: with its routing
	// key unless Key is set, and its properties and headers. Whoever may push to the queue
	// may then choose these.
	Original bool

	// Metadata adds forward.Metadata to the headers of originals.
	Metadata bool

	// Exchanges are those that an original may name in its header ExchangeHeader, in place of
	// Exchange. "*" stands for all. Default: none; the header has no meaning.
	Exchanges []string
}

// Target publishes messages to an exchange. It is a forward.Target.
type Target struct {
	cfg    Config
	broker *rabbit.Broker
	opts   *forward.Options
	link   *link.Link[*connection]
}

// New returns a target without connecting. Options may be nil.
func New(cfg Config, o *forward.Options) (*Target, error) {
	o, err := link.Options(o, "RabbitMQ")
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Addrs) == 0:
		return nil, link.Invalid("no RabbitMQ broker is given")
	case len(cfg.Exchange) > rabbit.MaxShort || len(cfg.Key) > rabbit.MaxShort || len(cfg.Vhost) > rabbit.MaxShort:
		return nil, link.Invalid("exchange, key and vhost have at most 255 bytes")
	}
	b := &rabbit.Broker{Addrs: cfg.Addrs, User: cfg.User, Password: cfg.Password, Vhost: cfg.Vhost, TLS: cfg.TLS}
	b.Complete()
	t := &Target{cfg: cfg, broker: b, opts: o}
	t.link = link.New(o.Timeout, t.dial, (*connection).hangUp)
	return t, nil
}

// Send publishes a message and waits for the broker's confirm.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	exchange, key, msg, err := t.address(m)
	if err != nil {
		return err
	}
	return t.link.Send(ctx, func(ctx context.Context, c *connection) error {
		if size, most := rabbit.Bytes(msg), c.amqp.Config.FrameSize; most > 0 && size > most {
			return tarry.Bury(link.Fault(fmt.Errorf("the headers have %d bytes, but the broker's frames %d", size, most), "raise RabbitMQ's frame_max"))
		}
		err := c.publish(ctx, exchange, key, msg)
		if isClosed(err) && c.amqp.IsClosed() {
			t.link.GiveUp(c)
		}
		return t.fault(err, exchange)
	})
}

// address returns a message for RabbitMQ, and where to publish it.
func (t *Target) address(m *tarry.Message[[]byte]) (exchange, key string, msg *amqp.Publishing, err error) {
	if t.cfg.Original {
		for _, h := range m.Headers {
			if h.Name == rabbit.EnvelopeHeader {
				return t.original(m, h.Value)
			}
		}
	}
	return t.cfg.Exchange, cmp.Or(t.cfg.Key, m.Queue), t.publishing(m), nil
}

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
	if ct := link.ContentType(m, t.opts); len(ct) <= rabbit.MaxShort {
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
		if len(h.Name) > rabbit.MaxShort || link.IsContentType(h.Name) || copies && i < trusted {
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

// fault converts the error of a publish for Send.
func (t *Target) fault(err error, exchange string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*tarry.Error](err); ok {
		return err // it has a hint
	}
	to := fmt.Sprintf("exchange %q", exchange)
	is := func(target error) bool { return errors.Is(err, target) }
	if _, ok := errors.AsType[*errUnroutable](err); ok {
		return link.Fault(err, "no queue takes messages to "+to+" with this routing key; bind one")
	}
	if is(rabbit.ErrBlocked) {
		return link.Fault(err, "give RabbitMQ memory or disk, or have messages consumed")
	}
	switch {
	case is(errNacked):
		return link.Fault(err, "a queue bound to "+to+" is full or failing; see RabbitMQ's log")
	case rabbit.HasCode(err, amqp.PreconditionFailed):
		return tarry.Bury(link.Fault(rabbit.OneLine(err), "RabbitMQ will never accept this message"))
	case rabbit.HasCode(err, amqp.NotFound):
		return link.Fault(rabbit.OneLine(err), "make the exchange, or choose another")
	case rabbit.HasCode(err, amqp.AccessRefused), is(amqp.ErrCredentials), is(amqp.ErrSASL):
		return link.Fault(rabbit.OneLine(err), "check the user, the password, and that the user may write to "+to)
	case is(amqp.ErrVhost), rabbit.HasCode(err, amqp.NotAllowed):
		return link.Fault(rabbit.OneLine(err), "check the vhost, and that the user has rights in it")
	case is(context.DeadlineExceeded), is(context.Canceled):
		return link.Fault(err, link.Unknown)
	}
	return link.Fault(rabbit.OneLine(err), "check that RabbitMQ runs at "+strings.Join(t.cfg.Addrs, ", ")+"; if the message was already sent, it may be duplicated")
}

// ExchangeHeader is the AMQP header in which an original may name its exchange.
const ExchangeHeader = "x-tarry-exchange"

// userHeader has the user-id of an original, if it is another user's: RabbitMQ accepts only
// that of the connection as a property.
const userHeader = "x-tarry-user-id"

// original returns a message as it was when an intake took it.
func (t *Target) original(m *tarry.Message[[]byte], envelope string) (exchange, key string, msg *amqp.Publishing, err error) {
	e, err := rabbit.ParseEnvelope(envelope)
	if err != nil {
		return "", "", nil, tarry.Bury(link.Fault(err, "only an intake may write it"))
	}
	msg = &e.Properties
	if msg.Headers == nil {
		msg.Headers = make(amqp.Table)
	}
	exchange = t.cfg.Exchange
	if name, ok := msg.Headers[ExchangeHeader].(string); ok && len(t.cfg.Exchanges) > 0 {
		if !slices.Contains(t.cfg.Exchanges, name) && !slices.Contains(t.cfg.Exchanges, "*") {
			return "", "", nil, tarry.Bury(link.Fault(fmt.Errorf("its header %s names the exchange %q, which is not allowed", ExchangeHeader, name),
				"add it to exchanges= of the target"))
		}
		exchange = name
	}
	if msg.UserId != "" && msg.UserId != t.broker.User {
		msg.Headers[userHeader] = msg.UserId
		msg.UserId = ""
	}
	headers := t.opts.Headers
	if t.cfg.Metadata {
		headers = forward.Metadata(m, t.opts)
	}
	for _, h := range headers {
		if h.Name != rabbit.EnvelopeHeader && len(h.Name) <= rabbit.MaxShort {
			msg.Headers[h.Name] = h.Value
		}
	}
	msg.DeliveryMode, msg.Body = amqp.Persistent, m.Body
	return exchange, cmp.Or(t.cfg.Key, e.Key), msg, nil
}

func init() { link.Register(parse, New, "amqp", "amqps") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := new(Config)
	b := rabbit.Parse(r, u, o.TLS)
	cfg.Addrs, cfg.User, cfg.Password, cfg.Vhost, cfg.TLS = b.Addrs, b.User, b.Password, b.Vhost, b.TLS
	r.Text("exchange", &cfg.Exchange)
	r.Text("key", &cfg.Key)
	r.Bool("original", &cfg.Original)
	r.Bool("metadata", &cfg.Metadata)
	var exchanges string
	if r.Text("exchanges", &exchanges) {
		cfg.Exchanges = strings.Split(exchanges, ",")
	}
	return cfg, r.Done()
}
