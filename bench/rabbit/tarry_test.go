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
	return scenario.Work(b, s.client, []string{scenario.Queue}, func(m *tarry.Message[[]byte]) { arrived(index(m.Body)) })
}

func (s *tarrySystem) close() error { return s.client.Close() }
