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
	"github.com/tarryhq/tarry/internal/wait"
)

// source is a stream, read by a durable consumer.
type source struct {
	cfg  config
	opts *intake.Options
	nc   *nats.Conn // nil: none

	ctx  context.Context // ended by stop: what cannot be set aside is given up
	stop context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex
	held map[string]bool // by their SenderID, messages taken and not acked
}

const (
	ackWait       = time.Minute
	refusedWait   = 10 * time.Second // until a message that cannot be set aside is tried again
	refusedSuffix = ".refused"       // of the subject for what can never be pushed
)

// connect connects. A connection that is lost stays so: the intake calls Receive again.
func (s *source) connect() (jetstream.JetStream, error) {
	s.hangUp()
	nc, err := nats.Connect(strings.Join(s.cfg.servers, ","), append([]nats.Option{
		nats.Name("tarry"), nats.Timeout(s.opts.Timeout), nats.NoReconnect(), nats.PingInterval(5 * time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // LastError tells
	}, s.cfg.connect...)...)
	if err != nil {
		return nil, err
	}
	s.nc, s.held = nc, make(map[string]bool)
	s.ctx, s.stop = context.WithCancel(context.Background())
	return jetstream.New(nc, jetstream.WithDefaultTimeout(s.opts.Timeout))
}

// hangUp closes the connection, once what was settled is acked.
func (s *source) hangUp() {
	if s.nc != nil {
		s.stop()
		s.work.Wait()
		_ = s.nc.FlushTimeout(s.opts.Timeout) // else those come again
		s.nc.Close()
		s.nc = nil
	}
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
	defer s.hangUp()
	js, err := s.connect()
	if err != nil {
		return "", s.trouble(err)
	}
	stream, c, err := s.look(ctx, js)
	if err != nil {
		return "", s.trouble(err)
	}
	return fmt.Sprintf("the stream %q has %d messages, of which the consumer %q has %d to take",
		s.cfg.stream, stream.CachedInfo().State.Msgs, s.cfg.durable, c.CachedInfo().NumPending), nil
}

// Receive hands over messages until ctx ends or the connection is lost.
func (s *source) Receive(ctx context.Context, to intake.Sink) error {
	err := s.receive(ctx, to)
	if ctx.Err() != nil {
		return nil
	}
	err = s.trouble(err)
	if s.nc != nil {
		s.stop()
	}
	return err
}

func (s *source) receive(ctx context.Context, to intake.Sink) error {
	js, err := s.connect()
	if err != nil {
		return err
	}
	_, c, err := s.look(ctx, js)
	if err != nil {
		return err
	}
	all, err := c.Messages(jetstream.PullMaxMessages(int(s.cfg.prefetch)), jetstream.PullHeartbeat(3*time.Second))
	if err != nil {
		return err
	}
	defer all.Stop()
	defer context.AfterFunc(ctx, all.Stop)()
	to.Report(nil)
	for {
		msg, err := all.Next()
		if err != nil {
			return err
		}
		m := message(msg)
		if !s.hold(m) {
			continue // it comes again while the store takes long
		}
		m.Settle = func(refused error) {
			if refused == nil {
				s.ack(m, msg)
				return
			}
			s.work.Go(func() {
				if s.setAside(js, to, msg, refused) {
					s.ack(m, msg)
				}
			})
		}
		to.Take(m)
	}
}

// hold reports whether a message is not held already.
func (s *source) hold(m *intake.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.held[m.SenderID]
	s.held[m.SenderID] = true
	return !had
}

// ack acks a message. If the ack is lost it comes again.
func (s *source) ack(m *intake.Message, msg jetstream.Msg) {
	_ = msg.Ack()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, m.SenderID)
}

// setAside publishes a message to the subject for refused ones, with the reason, again and
// again until it is stopped.
func (s *source) setAside(js jetstream.JetStream, to intake.Sink, of jetstream.Msg, why error) bool {
	msg := &nats.Msg{Subject: s.cfg.stream + refusedSuffix, Data: of.Data(), Header: make(nats.Header)}
	for name, values := range of.Headers() {
		if !strings.HasPrefix(name, "Nats-") { // JetStream would obey it
			msg.Header[name] = values
		}
	}
	msg.Header.Set("Refused", intake.Reason(why))
	for {
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
		_, err := js.PublishMsg(ctx, msg)
		cancel()
		if s.ctx.Err() != nil {
			return err == nil
		}
		if err == nil {
			to.Report(nil)
			return true
		}
		to.Report(&intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused messages wait for a stream with the subject " + msg.Subject + "; make one, or let the intake with declare=true"})
		if !wait.Sleep(s.ctx, refusedWait) {
			return false
		}
	}
}

// Close closes the connection, once what was settled is acked.
func (s *source) Close() error {
	s.hangUp()
	return nil
}

// message converts a message.
func message(msg jetstream.Msg) *intake.Message {
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
	return m
}
