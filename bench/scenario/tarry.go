package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

type tarrySystem struct{ client *tarry.Client }

// OpenTarry opens tarry with the engine that a URL names.
func OpenTarry(ctx context.Context, url string) (System, error) {
	c, err := tarry.Open(ctx, url, nil)
	return Tarry(c), err
}

// Tarry returns the System of an open client.
func Tarry(c *tarry.Client) System { return &tarrySystem{c} }

func (s *tarrySystem) Push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.client.Push(ctx, queue, Body(i), tarry.Key(Key(i)), tarry.At(due))
	return err
}

func (s *tarrySystem) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	msgs := make([]tarry.Draft, 0, to-from)
	for i := from; i < to; i++ {
		msgs = append(msgs, tarry.NewDraft(queue, Body(i), tarry.Key(Key(i)), tarry.At(due(i))))
	}
	pushed, err := s.client.PushMany(ctx, msgs)
	for _, p := range pushed {
		err = errors.Join(err, p.Err)
	}
	return err
}

func (s *tarrySystem) Cancel(ctx context.Context, queue string, i int) error {
	return s.client.Cancel(ctx, tarry.ByKey(Key(i)).Of(queue))
}

func (s *tarrySystem) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	return Work(b, s.client, queues, func(m *tarry.Message[[]byte]) { started(Index(m.Key)) })
}

// Work runs a worker of tarry on queues until stop, and calls started for each message.
func Work(b *testing.B, c *tarry.Client, queues []string, started func(m *tarry.Message[[]byte])) (stop func()) {
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: Clients})
	for _, q := range queues {
		tarry.Handle(w, tarry.NewTopic[[]byte](q), func(_ context.Context, m *tarry.Message[[]byte]) error {
			started(m)
			return nil
		})
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		Must(b, <-ended)
	}
}

func (s *tarrySystem) Empty(ctx context.Context, queue string) (bool, error) {
	q, err := s.client.Queue(ctx, queue)
	return q.Scheduled+q.Ready+q.Leased+q.Dead == 0, err
}

// Count returns how many messages pend.
func (s *tarrySystem) Count(ctx context.Context, queue string) (int, error) {
	q, err := s.client.Queue(ctx, queue)
	return int(q.Scheduled + q.Ready + q.Leased), err
}

func (s *tarrySystem) Close() error { return s.client.Close() }
