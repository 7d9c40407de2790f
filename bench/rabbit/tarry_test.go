package rabbit

import (
	"context"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/rabbitengine"
)

type tarrySystem struct{ client *tarry.Client }

func openTarry(unit string) func(context.Context, string) (system, error) {
	return func(ctx context.Context, url string) (system, error) {
		c, err := tarry.Open(ctx, url+"?unit="+unit, nil)
		return &tarrySystem{c}, err
	}
}

func (s *tarrySystem) push(ctx context.Context, i int, delay time.Duration) error {
	_, err := s.client.Push(ctx, scenario.Queue, body(i), tarry.In(delay))
	return err
}

func (s *tarrySystem) work(b *testing.B, arrived func(i int)) (stop func()) {
	w := tarry.NewWorker(s.client, &tarry.WorkerConfig{Concurrency: scenario.Clients})
	tarry.Handle(w, tarry.NewTopic[[]byte](scenario.Queue), func(_ context.Context, m *tarry.Message[[]byte]) error {
		arrived(index(m.Body))
		return nil
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		scenario.Must(b, <-ended)
	}
}

func (s *tarrySystem) close() error { return s.client.Close() }
