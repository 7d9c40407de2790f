package tarrytest

import (
	"context"

	"github.com/tarryhq/tarry"
)

// Recorder pushes to one topic, for code that pushes through an interface of its own, such as
//
//	type Reminders interface {
//		Push(context.Context, Ride, ...tarry.PushOption) (tarry.Pushed, error)
//		Cancel(context.Context, tarry.Ref) error
//	}
//
// It answers as the topic does, and RequirePushed sees what it pushed. Client.Fail makes its
// pushes fail.
type Recorder[T any] struct {
	client *Client
	topic  *tarry.Topic[T]
}

// NewRecorder returns a recorder of a topic.
func NewRecorder[T any](c *Client, topic *tarry.Topic[T]) *Recorder[T] {
	return &Recorder[T]{c, topic}
}

// Push is Topic.Push.
func (r *Recorder[T]) Push(ctx context.Context, v T, opts ...tarry.PushOption) (tarry.Pushed, error) {
	return r.topic.Push(ctx, r.client.Client, v, opts...)
}

// Rearm is Topic.Rearm.
func (r *Recorder[T]) Rearm(ctx context.Context, key string, due tarry.Due, v T, opts ...tarry.PushOption) (tarry.Pushed, error) {
	return r.topic.Rearm(ctx, r.client.Client, key, due, v, opts...)
}

// Reschedule is Topic.Reschedule.
func (r *Recorder[T]) Reschedule(ctx context.Context, ref tarry.Ref, due tarry.Due) (tarry.Info, error) {
	return r.topic.Reschedule(ctx, r.client.Client, ref, due)
}

// Cancel is Topic.Cancel.
func (r *Recorder[T]) Cancel(ctx context.Context, ref tarry.Ref) error {
	return r.topic.Cancel(ctx, r.client.Client, ref)
}
