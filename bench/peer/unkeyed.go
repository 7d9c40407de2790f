package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
)

// unkeyed is tarry on an engine that has no keys, counts or cancels: RabbitMQ's.
type unkeyed struct{ client *tarry.Client }

// TarryUnkeyed opens tarry with an engine without keys.
func TarryUnkeyed(ctx context.Context, url string) (scenario.System, error) {
	c, err := tarry.Open(ctx, url, nil)
	return &unkeyed{c}, err
}

func (s *unkeyed) Push(ctx context.Context, queue string, i int, due time.Time) error {
	_, err := s.client.Push(ctx, queue, numbered(i), tarry.At(due))
	return err
}

func (s *unkeyed) PushMany(ctx context.Context, queue string, from, to int, due func(i int) time.Time) error {
	msgs := make([]tarry.Draft, 0, to-from)
	for i := from; i < to; i++ {
		msgs = append(msgs, tarry.NewDraft(queue, numbered(i), tarry.At(due(i))))
	}
	pushed, err := s.client.PushMany(ctx, msgs)
	for _, p := range pushed {
		err = errors.Join(err, p.Err)
	}
	return err
}

func (s *unkeyed) Cancel(context.Context, string, int) error { return errors.ErrUnsupported }

func (s *unkeyed) Work(b *testing.B, queues []string, started func(i int)) (stop func()) {
	return scenario.Work(b, s.client, queues, func(m *tarry.Message[[]byte]) { started(number(m.Body)) })
}

func (s *unkeyed) Empty(context.Context, string) (bool, error) { return true, nil }

func (s *unkeyed) Close() error { return s.client.Close() }
