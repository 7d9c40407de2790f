package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// ByKey names the message that holds a key, in the queue of the Topic. Calls of a Client
// need the queue as well: ByKey("42").Of("order.unpaid").
func ByKey(key string) Ref { return Ref{Key: key} }

// ByID names a message by its id, in the queue of the Topic. Calls of a Client need the
// queue as well: ByID(id).Of("order.unpaid").
func ByID(id ID) Ref { return Ref{ID: id} }

// refer makes the checks common to all calls on one message.
func (c *Client) refer(ctx context.Context, op string, ref Ref, can bool) error {
	if err := c.begin(ctx, op, ref.Queue); err != nil {
		return err
	}
	if err := ref.Validate(op); err != nil {
		return err
	}
	if err := c.caps.CheckRef(op, ref); err != nil {
		return err
	}
	return c.able(can, op, ref.Queue, op)
}

// ref completes a reference with the topic's queue. A reference to another queue is
// ErrInvalid.
func (t *Topic[T]) ref(op string, ref Ref) (Ref, error) {
	if ref.Queue != "" && ref.Queue != t.queue {
		return ref, engine.Invalid(op, Ref{Queue: t.queue, Key: ref.Key}, "the reference names a message of the queue %q, not of the topic's", engine.Clip(ref.Queue))
	}
	return ref.Of(t.queue), nil
}
