package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/natsurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// conn is a connection to NATS. It is an intake.Conn.
type conn struct {
	*source
	nc       *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer
}

const (
	ackWait       = time.Minute
	refusedSuffix = ".refused" // of the subject for what can never be pushed
)

// Connect connects. A connection that is lost stays so: the intake connects anew.
func (s *source) Connect(ctx context.Context) (intake.Conn, string, error) {
	nc, err := nats.Connect(strings.Join(s.servers, ","), append([]nats.Option{
		nats.Name("tarry"), nats.Timeout(s.timeout), nats.NoReconnect(), nats.PingInterval(5 * time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // LastError tells
	}, s.connect...)...)
	c := &conn{source: s, nc: nc}
	if err != nil {
		return nil, "", c.trouble(err)
	}
	found, err := c.look(ctx)
	if err != nil {
		err = c.trouble(err)
		nc.Close()
		return nil, "", err
	}
	return c, found, nil
}

// Close closes the connection, once what was settled is acked.
func (c *conn) Close() {
	_ = c.nc.FlushTimeout(c.timeout) // else that comes again
	c.nc.Close()
}

// look makes what it may, and says what it found.
func (c *conn) look(ctx context.Context) (found string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(c.timeout)); err != nil {
		return "", err
	}
	stream, err := c.js.Stream(ctx, c.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && c.subject != "" {
		stream, err = c.js.CreateStream(ctx, jetstream.StreamConfig{Name: c.stream, Subjects: []string{c.subject}})
	}
	if err == nil && c.declare {
		refused := c.stream + refusedSuffix
		if _, err = c.js.StreamNameBySubject(ctx, refused); errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = c.js.CreateStream(ctx, jetstream.StreamConfig{Name: strings.ReplaceAll(refused, ".", "-"), Subjects: []string{refused}})
		}
	}
	if err != nil {
		return "", err
	}
	c.consumer, err = stream.Consumer(ctx, c.durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) && c.declare {
		c.consumer, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: c.durable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: int(c.prefetch),
		})
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the stream %q has %d messages, of which the consumer %q has %d to take",
		c.stream, stream.CachedInfo().State.Msgs, c.durable, c.consumer.CachedInfo().NumPending), nil
}

// Receive hands over messages until ctx ends or the connection is lost.
func (c *conn) Receive(ctx context.Context, to *intake.Sink) error {
	to.Report(nil)
	failed := make(chan error, 1)
	consumed, err := c.consumer.Consume(func(msg jetstream.Msg) { to.Take(message(msg)) },
		jetstream.PullMaxMessages(int(c.prefetch)), jetstream.PullHeartbeat(3*time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case failed <- err:
			default: // the first says more
			}
		}))
	if err != nil {
		return c.trouble(err)
	}
	defer consumed.Stop()
	select {
	case err = <-failed:
		return c.trouble(err)
	case <-ctx.Done():
		return nil
	}
}

// Ack acks messages. What is lost of that comes again.
func (c *conn) Ack(ms []*intake.Message) (err error) {
	for _, m := range ms {
		err = errors.Join(err, m.Receipt.(jetstream.Msg).Ack())
	}
	return c.trouble(err)
}

// SetAside publishes a message to the subject for refused ones, with the reason.
func (c *conn) SetAside(m *intake.Message, reason string) error {
	of := m.Receipt.(jetstream.Msg)
	msg := &nats.Msg{Subject: c.stream + refusedSuffix, Data: of.Data(), Header: make(nats.Header)}
	for name, values := range of.Headers() {
		if !strings.HasPrefix(name, "Nats-") { // JetStream would obey it
			msg.Header[name] = values
		}
	}
	msg.Header.Set("Refused", reason)
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if _, err := c.js.PublishMsg(ctx, msg); err != nil {
		return &intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused messages wait for a stream with the subject " + msg.Subject + "; make one, or let the intake with declare=true"}
	}
	return nil
}

// message converts a message.
func message(msg jetstream.Msg) *intake.Message {
	m := &intake.Message{Receipt: msg}
	m.Draft.Body = msg.Data()
	if of, err := msg.Metadata(); err != nil {
		m.Refused = err // it is none of a stream's
	} else {
		m.ID, m.Redelivered = fmt.Sprintf("%d-%d", of.Sequence.Stream, of.Timestamp.UnixNano()), of.NumDelivered > 1
	}
	for _, name := range slices.Sorted(maps.Keys(msg.Headers())) {
		for _, value := range msg.Headers()[name] {
			m.Field(name, value)
		}
	}
	return m
}

func init() {
	intake.Register("nats", open)
	intake.Register("tls", open)
}

// source is a stream, read by a durable consumer.
type source struct {
	servers                  []string // without passwords
	connect                  []nats.Option
	stream, durable, subject string
	declare                  bool
	prefetch                 int64
	timeout                  time.Duration // of each answer
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	s := &source{durable: "tarry", prefetch: 1000, timeout: o.Timeout}
	s.servers, s.connect = natsurl.Connect(r, u, o.TLS)
	if r.Text("stream", &s.stream); s.stream == "" {
		r.Fail("stream is missing, as in nats://127.0.0.1:4222?stream=DELAYED")
	}
	if r.Text("durable", &s.durable); s.durable == "" {
		r.Fail("durable is empty; leave it out for tarry")
	}
	r.Bool("declare", &s.declare)
	if r.Text("subject", &s.subject) && !s.declare {
		r.Fail("subject is for a stream that is made, with declare=true")
	}
	if r.Int("prefetch", &s.prefetch); s.prefetch < 1 || s.prefetch > 10_000 {
		r.Fail("prefetch is 1 to 10000")
	}
	return s, r.Done()
}

// trouble converts an error of NATS.
func (c *conn) trouble(err error) error {
	if err == nil {
		return nil
	}
	nc := c.nc
	if nc != nil && nc.LastError() != nil && (errors.Is(nc.LastError(), nats.ErrPermissionViolation) || nc.IsClosed()) {
		err = nc.LastError()
	}
	is := func(all ...error) bool {
		return slices.ContainsFunc(all, func(target error) bool { return errors.Is(err, target) })
	}
	t := &intake.Trouble{Code: intake.CodeFailed, Err: err, Hint: "NATS returned this error"}
	switch {
	case is(jetstream.ErrStreamNotFound, jetstream.ErrNoStreamResponse):
		t.Code, t.Hint = "no_stream", "make the stream, or let the intake with declare=true and a subject"
	case is(jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerDoesNotExist):
		t.Code, t.Hint = "no_consumer", "make a durable pull consumer, or let the intake with declare=true"
	case is(jetstream.ErrNotPullConsumer):
		t.Code, t.Hint = "mismatch", "the consumer is none to pull from; give another as durable"
	case is(jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, nats.ErrNoResponders):
		t.Code, t.Hint = "no_jetstream", "switch JetStream on, for the account of this user too"
	case is(nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired):
		t.Code, t.Hint = intake.CodeCredentials, "check the user, password or credentials of the source's URL"
	case is(nats.ErrPermissionViolation):
		t.Code, t.Hint = intake.CodeForbidden, "let the user publish to $JS.API.> and $JS.ACK.>, and subscribe to _INBOX.>"
	case nc == nil, nc.IsClosed(), is(nats.ErrTimeout, context.DeadlineExceeded, jetstream.ErrNoHeartbeat):
		t.Code, t.Hint = intake.CodeUnreachable, "check that NATS runs at "+strings.Join(c.servers, ", ")+"; the intake connects again by itself"
	}
	return t
}
