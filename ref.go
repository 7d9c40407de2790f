package tarry

import "context"

// ByKey names the message that holds a key.
func ByKey(key string) Ref { return Ref{Key: key} }

// ByID names a message by its id.
func ByID(id ID) Ref { return Ref{ID: id} }

// refer checks what all calls on one message need.
func (c *Client) refer(ctx context.Context, op string, ref Ref, can bool) error {
	if err := c.begin(ctx, op, ref.Queue); err != nil {
		return err
	}
	if err := checkRef(op, ref); err != nil {
		return err
	}
	return c.able(can, op, ref.Queue, op)
}
