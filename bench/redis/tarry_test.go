package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

type tarrySystem struct{ client *tarry.Client }

// openTarry opens the Redis engine with further parameters in its URL.
func openTarry(params string) func(context.Context, *redistest.Server) (system, error) {
	return func(ctx context.Context, srv *redistest.Server) (system, error) {
		c, err := tarry.Open(ctx, srv.URL()+"?prefix=bench"+params, nil)
		return &tarrySystem{c}, err
	}
}

func (s *tarrySystem) push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.client.Push(ctx, queue, body(i), tarry.Key(key(i)), tarry.At(due))
	return err
}

func (s *tarrySystem) pushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	msgs := make([]tarry.Draft, 0, to-from)
	for i := from; i < to; i++ {
		msgs = append(msgs, tarry.NewDraft(queue, body(i), tarry.Key(key(i)), tarry.At(due(i))))
	}
	pushed, err := s.client.PushMany(ctx, msgs)
	for _, p := range pushed {
		err = errors.Join(err, p.Err)
	}
	return err
}

func (s *tarrySystem) cancel(ctx context.Context, queue string, i int) error {
	return s.client.Cancel(ctx, tarry.ByKey(key(i)).Of(queue))
}

func (s *tarrySystem) work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	w := tarry.NewWorker(s.client, &tarry.WorkerConfig{Concurrency: clients})
	for _, q := range queues {
		tarry.Handle(w, tarry.NewTopic[[]byte](q), func(_ context.Context, m *tarry.Message[[]byte]) error {
			started(index(m.Key))
			return nil
		})
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		must(b, <-ended)
	}
}

func (s *tarrySystem) left(ctx context.Context, queue string) (int, error) {
	q, err := s.client.Queue(ctx, queue)
	return int(q.Scheduled + q.Ready + q.Leased + q.Dead), err
}

func (s *tarrySystem) close() error { return s.client.Close() }
