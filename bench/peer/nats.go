package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/bench/scenario"
)

// natsSystem is NATS with scheduled messages: one on a subject of its own, which the server
// publishes on another when it is due.
type natsSystem struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	due    jetstream.Consumer
}

const natsDue = "due"

// NATS opens a NATS server with JetStream.
func NATS(ctx context.Context, url string) (scenario.System, error) {
	conn, err := nats.Connect(url, nats.Timeout(time.Minute), nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	s := &natsSystem{conn: conn}
	if err := s.declare(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *natsSystem) declare(ctx context.Context) (err error) {
	if s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(time.Minute)); err != nil {
		return err
	}
	s.stream, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "bench", Subjects: []string{"at.>", natsDue}, Storage: jetstream.FileStorage,
		Retention: jetstream.WorkQueuePolicy, AllowMsgSchedules: true, AllowDirect: true,
	})
	if err != nil {
		return err
	}
	s.due, err = s.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "bench", FilterSubject: natsDue, AckPolicy: jetstream.AckExplicitPolicy,
	})
	return err
}

func natsSubject(queue string, i int) string { return "at." + queue + "." + scenario.Key(i) }

// natsMessage has the time in milliseconds: the client's own option has whole seconds.
func natsMessage(queue string, i int, due time.Time) *nats.Msg {
	m := nats.NewMsg(natsSubject(queue, i))
	m.Header.Set("Nats-Schedule", "@at "+due.UTC().Format("2006-01-02T15:04:05.000Z"))
	m.Header.Set("Nats-Schedule-Target", natsDue)
	m.Data = numbered(i)
	return m
}

func (s *natsSystem) Push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.js.PublishMsg(ctx, natsMessage(queue, i, due))
	return err
}

// PushMany publishes all before it waits for the answers.
func (s *natsSystem) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	var acks []jetstream.PubAckFuture
	for i := from; i < to; i++ {
		ack, err := s.js.PublishMsgAsync(natsMessage(queue, i, due(i)), jetstream.WithStallWait(time.Minute))
		if err != nil {
			return err
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *natsSystem) Cancel(ctx context.Context, queue string, i int) error {
	return s.stream.Purge(ctx, jetstream.WithPurgeSubject(natsSubject(queue, i)))
}

func (s *natsSystem) Work(b *testing.B, _ []string, started func(i int)) (stop func()) {
	consuming, err := s.due.Consume(func(m jetstream.Msg) {
		started(number(m.Data()))
		if err := m.Ack(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			b.Error(err)
		}
	})
	scenario.Must(b, err)
	return func() {
		consuming.Stop()
		<-consuming.Closed()
	}
}

// Empty says whether all that has become due is acked.
func (s *natsSystem) Empty(ctx context.Context, _ string) (bool, error) {
	info, err := s.due.Info(ctx)
	return err == nil && info.NumPending == 0 && info.NumAckPending == 0, err
}

// Count counts all but what is in the other queue, which is little.
func (s *natsSystem) Count(ctx context.Context, _ string) (int, error) {
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter("at.warm.>"))
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs) - len(info.State.Subjects), nil
}

func (s *natsSystem) Close() error {
	s.conn.Close()
	return nil
}
