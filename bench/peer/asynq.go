package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/tarryhq/tarry/bench/scenario"
)

type asynqSystem struct {
	redis     asynq.RedisClientOpt
	client    *asynq.Client
	inspector *asynq.Inspector
}

// Asynq opens asynq on a redis-server.
func Asynq(addr string) scenario.System {
	// A connection for each client, so that none waits for another's.
	opt := asynq.RedisClientOpt{Addr: addr, PoolSize: scenario.Clients}
	return &asynqSystem{opt, asynq.NewClient(opt), asynq.NewInspector(opt)}
}

func (s *asynqSystem) Push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask("bench", scenario.Body(i)),
		asynq.ProcessAt(due), asynq.TaskID(scenario.Key(i)), asynq.Queue(queue))
	return err
}

// PushMany makes single calls: asynq has no others.
func (s *asynqSystem) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	for i := from; i < to; i++ {
		if err := s.Push(ctx, queue, i, due(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *asynqSystem) Cancel(_ context.Context, queue string, i int) error {
	return s.inspector.DeleteTask(queue, scenario.Key(i))
}

func (s *asynqSystem) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	cfg := asynq.Config{Concurrency: scenario.Clients, Queues: make(map[string]int), LogLevel: asynq.FatalLevel}
	for _, q := range queues {
		cfg.Queues[q] = 1
	}
	srv := asynq.NewServer(s.redis, cfg)
	scenario.Must(b, srv.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		started(scenario.Index(id))
		return nil
	})))
	return srv.Shutdown
}

func (s *asynqSystem) Empty(_ context.Context, queue string) (bool, error) {
	info, err := s.inspector.GetQueueInfo(queue)
	return err == nil && info.Size == 0, err
}

func (s *asynqSystem) Count(_ context.Context, queue string) (int, error) {
	info, err := s.inspector.GetQueueInfo(queue)
	if err != nil {
		return 0, err
	}
	return info.Size, nil
}

func (s *asynqSystem) Close() error { return errors.Join(s.client.Close(), s.inspector.Close()) }
