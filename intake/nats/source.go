package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/intake"
)

// source is a stream, read by a durable consumer.
type source struct {
	cfg  config
	opts *intake.Options

	mu   sync.Mutex
	last *receiving // the latest; nil: none
}

const (
	ackWait       = time.Minute
	refusedSuffix = ".refused" // of the subject for what can never be pushed
)

// connect connects. A connection that is lost stays so: the intake calls Receive again.
func (s *source) connect() (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(strings.Join(s.cfg.servers, ","), append([]nats.Option{
		nats.Name("tarry"), nats.Timeout(s.opts.Timeout), nats.NoReconnect(), nats.PingInterval(5 * time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // LastError tells
	}, s.cfg.connect...)...)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(s.opts.Timeout))
	return nc, js, err
}

// look makes what it may, and returns the stream and the consumer.
func (s *source) look(ctx context.Context, js jetstream.JetStream) (stream jetstream.Stream, c jetstream.Consumer, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	stream, err = js.Stream(ctx, s.cfg.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && s.cfg.subject != "" {
		stream, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: s.cfg.stream, Subjects: []string{s.cfg.subject}})
	}
	if err == nil && s.cfg.declare {
		refused := s.cfg.stream + refusedSuffix
		if _, err = js.StreamNameBySubject(ctx, refused); errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: strings.ReplaceAll(refused, ".", "-"), Subjects: []string{refused}})
		}
	}
	if err != nil {
		return nil, nil, err
	}
	c, err = stream.Consumer(ctx, s.cfg.durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) && s.cfg.declare {
		c, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: s.cfg.durable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: int(s.cfg.prefetch),
		})
	}
	return stream, c, err
}

// Test makes what it may, and says what it found.
func (s *source) Test(ctx context.Context) (found string, err error) {
	nc, js, err := s.connect()
	if err != nil {
		return "", s.trouble(nil, err)
	}
	defer nc.Close()
	stream, c, err := s.look(ctx, js)
	if err != nil {
		return "", s.trouble(nc, err)
	}
	info := c.CachedInfo()
	return fmt.Sprintf("the stream %q has %d messages, of which the consumer %q has %d to take and has not acked %d",
		s.cfg.stream, stream.CachedInfo().State.Msgs, s.cfg.durable, info.NumPending, info.NumAckPending), nil
}

// Receive hands over messages until ctx ends or the connection is lost.
func (s *source) Receive(ctx context.Context, to intake.Sink) error {
	nc, js, err := s.connect()
	if err != nil {
		return s.trouble(nil, err)
	}
	r := newReceiving(s, nc, js, to)
	s.mu.Lock()
	s.last = r
	s.mu.Unlock()
	if err := r.run(ctx); ctx.Err() == nil {
		err = s.trouble(nc, err)
		r.hangUp()
		return err
	}
	return nil
}

// Close closes the connection, once what was settled is acked.
func (s *source) Close() error {
	s.mu.Lock()
	r := s.last
	s.last = nil
	s.mu.Unlock()
	if r != nil {
		r.hangUp()
	}
	return nil
}

// message converts a message.
func (r *receiving) message(msg jetstream.Msg) *intake.Message {
	m := &intake.Message{}
	m.Draft.Body = msg.Data()
	if of, err := msg.Metadata(); err != nil {
		m.Refused = err // it is none of a stream's
	} else {
		m.SenderID, m.Redelivered = fmt.Sprintf("%d-%d", of.Sequence.Stream, of.Timestamp.UnixNano()), of.NumDelivered > 1
	}
	for _, name := range slices.Sorted(maps.Keys(msg.Headers())) {
		for _, value := range msg.Headers()[name] {
			m.Field(name, value)
		}
	}
	m.Settle = func(refused error) {
		if refused == nil {
			_ = msg.Ack() // else it comes again
			return
		}
		select {
		case r.refusals <- refusal{msg, refused}:
		case <-r.ctx.Done():
		}
	}
	return m
}

// trouble converts an error of NATS.
func (s *source) trouble(nc *nats.Conn, err error) error {
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
		t.Code, t.Hint = intake.CodeUnreachable, "check that NATS runs at "+strings.Join(s.cfg.servers, ", ")+"; the intake connects again by itself"
	}
	return t
}
