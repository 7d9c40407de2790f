package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

type asynqSystem struct {
	redis     asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
}

func openAsynq(_ context.Context, srv *redistest.Server) (system, error) {
	// A connection for each client, so that none waits for another's.
	opt := asynq.RedisClientOpt{Addr: srv.Addr(), PoolSize: clients}
	return &asynqSystem{opt, asynq.NewClient(opt), asynq.NewInspector(opt)}, nil
}

func (s *asynqSystem) push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask("bench", body(i)),
		asynq.ProcessAt(due), asynq.TaskID(key(i)), asynq.Queue(queue))
	return err
}

// pushMany makes single calls: asynq has no others.
func (s *asynqSystem) pushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	for i := from; i < to; i++ {
		if err := s.push(ctx, queue, i, due(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *asynqSystem) cancel(_ context.Context, queue string, i int) error {
	return s.inspector.DeleteTask(queue, key(i))
}

func (s *asynqSystem) work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	cfg := asynq.Config{Concurrency: clients, Queues: make(map[string]int), LogLevel: asynq.FatalLevel}
	for _, q := range queues {
		cfg.Queues[q] = 1
	}
	srv := asynq.NewServer(s.redis, cfg)
	must(b, srv.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		started(index(id))
		return nil
	})))
	return srv.Shutdown
}

func (s *asynqSystem) left(_ context.Context, queue string) (int, error) {
	info, err := s.inspector.GetQueueInfo(queue)
	if err != nil {
		return 0, err
	}
	return info.Size, nil
}

func (s *asynqSystem) close() error { return errors.Join(s.client.Close(), s.inspector.Close()) }
