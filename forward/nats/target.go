package nats

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/natsurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// Config is the destination of messages.
type Config struct {
	Servers []string      // such as "nats://host:4222"; at least one, without passwords
	Connect []nats.Option // authentication and transport: nats.UserInfo, nats.Secure, …

	// Subject is the subject to publish to. Default: the name of the message's queue.
	Subject string

	// Stream is the name of the stream that must take the message. Default: any.
	Stream string
}

// Target publishes messages to JetStream. It is a forward.Target.
type Target struct {
	cfg  Config
	opts *forward.Options
	link *link.Link[*nats.Conn]
}

// New returns a target without connecting. Options may be nil.
func New(cfg Config, o *forward.Options) (*Target, error) {
	o, err := link.Options(o, "NATS")
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Servers) == 0:
		return nil, link.Invalid("no NATS server is given")
	case cfg.Subject != "" && !validSubject(cfg.Subject):
		return nil, link.Invalid("the subject cannot be published to; it has tokens separated by dots, without spaces, * and >")
	case strings.HasPrefix(cfg.Subject, "$JS.") || strings.HasPrefix(cfg.Subject, "$SYS."):
		return nil, link.Invalid("subjects under $JS and $SYS are commands to the server; choose another")
	}
	t := &Target{cfg: cfg, opts: o}
	t.link = link.New(o.Timeout, t.dial, (*nats.Conn).Close)
	return t, nil
}

const (
	dialTimeout   = 3 * time.Second // to each server
	reconnectWait = 200 * time.Millisecond
	pingInterval  = 5 * time.Second // two unanswered pings close the connection
)

func (t *Target) dial(context.Context) (*nats.Conn, error) {
	log := t.opts.Logger
	options := append([]nats.Option{
		nats.Name("tarry"),
		nats.Timeout(min(dialTimeout, t.opts.Timeout)),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingInterval),
		nats.ReconnectBufSize(-1), // without a connection, fail instead of sending later
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("tarry: lost the connection to NATS", "servers", t.servers(), "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("tarry: NATS reports an error", "servers", t.servers(), "error", err)
		}),
	}, t.cfg.Connect...)
	nc, err := nats.Connect(strings.Join(t.cfg.Servers, ","), options...)
	if err != nil {
		return nil, t.fault(err)
	}
	return nc, nil
}

func (t *Target) servers() string { return strings.Join(t.cfg.Servers, ", ") }

// Send publishes a message and waits for the stream's answer.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	subject := t.cfg.Subject
	if subject == "" {
		if subject = m.Queue; !validSubject(subject) || strings.HasPrefix(subject, "$") {
			return tarry.Bury(link.Fault(errors.New("the queue's name is not a subject to publish to"), "give subject in the target's URL"))
		}
	}
	msg := &nats.Msg{Subject: subject, Data: m.Body, Header: t.header(m)}
	return t.link.Send(ctx, func(ctx context.Context, nc *nats.Conn) error {
		js, err := jetstream.New(nc)
		if err != nil {
			return t.fault(err)
		}
		_, err = js.PublishMsg(ctx, msg)
		switch {
		case err == nil:
			return nil
		case nc.IsClosed():
			t.link.GiveUp(nc) // the user was refused
			if last := nc.LastError(); last != nil {
				err = last
			}
			return t.fault(err)
		case ctx.Err() != nil:
			if last := nc.LastError(); last != nil {
				return link.Fault(fmt.Errorf("%w; the server's last error: %w", ctx.Err(), last), link.Unknown)
			}
			return link.Fault(ctx.Err(), link.Unknown)
		case errors.Is(err, nats.ErrMaxPayload):
			err = fmt.Errorf("%w: %d bytes with headers, but the server takes %d", err, msg.Size()-len(subject), nc.MaxPayload())
			return tarry.Bury(link.Fault(err, "raise the server's max_payload"))
		}
		return t.fault(err)
	})
}

// Close waits for Sends in progress and closes the connection.
func (t *Target) Close() error { return t.link.Close() }

const commandPrefix = "Nats-" // of headers that JetStream obeys

// isCommand reports whether JetStream obeys a header, or clients take it for the server's:
// they skip a message that has a Status and no body.
func isCommand(name string) bool {
	return len(name) >= len(commandPrefix) && strings.EqualFold(name[:len(commandPrefix)], commandPrefix) ||
		strings.EqualFold(name, "Status") || strings.EqualFold(name, "Description")
}

// header returns the headers of a message.
func (t *Target) header(m *tarry.Message[[]byte]) nats.Header {
	h := make(nats.Header)
	all := forward.Metadata(m, t.opts)
	trustedFrom := len(all) - len(t.opts.Headers) // from this index on
	for i, a := range all {
		switch {
		case !link.IsToken(a.Name), link.IsContentType(a.Name):
		case i < trustedFrom && isCommand(a.Name):
		default:
			h.Add(a.Name, a.Value)
		}
	}
	if ct := link.ContentType(m, t.opts); ct != "" {
		h.Set("Content-Type", ct)
	}
	h.Set(jetstream.MsgIDHeader, messageID(m))
	if t.cfg.Stream != "" {
		h.Set(jetstream.ExpectedStreamHeader, t.cfg.Stream)
	}
	return h
}

// messageID returns an id that is the same in each attempt. The message's id alone is not
// enough: another store may use it too, and a replacing push may change the body.
func messageID(m *tarry.Message[[]byte]) string {
	body := fnv.New64a()
	_, _ = body.Write(m.Body) // never fails
	return m.Queue + "/" + m.ID.String() + "/" + strconv.FormatInt(m.Created.UnixMilli(), 36) + "/" + strconv.FormatUint(body.Sum64(), 36)
}

// validSubject reports whether a subject can be published to.
func validSubject(s string) bool {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || r == '*' || r == '>' }
	return !strings.ContainsFunc(s, odd) && !slices.Contains(strings.Split(s, "."), "")
}

// fault converts the error of a call for Send.
func (t *Target) fault(err error) error {
	api, answered := errors.AsType[*jetstream.APIError](err)
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case answered && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return tarry.Bury(link.Fault(err, "raise the stream's max_msg_size"))
	case answered && api.ErrorCode == codeStoreFailed:
		return link.Fault(err, "the stream is full and discards new messages; raise its limits, or have them consumed")
	case answered && api.ErrorCode == codeOtherStream:
		return link.Fault(err, "another stream has the subject; check stream and subject of the URL")
	case answered:
		return link.Fault(err, "JetStream returned this error")
	case is(jetstream.ErrNoStreamResponse):
		return link.Fault(err, "no stream has this subject; make one, or check the subject")
	case is(jetstream.ErrInvalidJSAck):
		return link.Fault(err, "the subscriber of this subject is not a stream; choose another")
	case is(nats.ErrAuthorization), is(nats.ErrAuthExpired), is(nats.ErrAuthRevoked), is(nats.ErrAccountAuthExpired):
		return link.Fault(err, "check the user, password or credentials of the target")
	case is(nats.ErrReconnectBufExceeded), is(nats.ErrDisconnected), is(nats.ErrConnectionReconnecting):
		return link.Fault(errors.New("there is no connection"), "check that NATS runs at "+t.servers())
	case is(nats.ErrNoServers), is(nats.ErrTimeout):
		return link.Fault(err, "check that NATS runs at "+t.servers())
	}
	return link.Fault(err, "check that NATS runs at "+t.servers()+"; "+link.Unknown)
}

// Error codes of JetStream that the client has no names for.
const (
	codeOtherStream jetstream.ErrorCode = 10060
	codeStoreFailed jetstream.ErrorCode = 10077
)

func init() { link.Register(parse, New, "nats", "tls") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{}
	r.Text("subject", &cfg.Subject)
	r.Text("stream", &cfg.Stream)
	cfg.Servers, cfg.Connect = natsurl.Connect(r, u, o.TLS)
	return cfg, r.Done()
}
