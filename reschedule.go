package tarry

import "context"

// Reschedule moves the due time of a message that is scheduled or ready. Errors:
// ErrNotFound; ErrLeased when a worker already holds the message; ErrStale when ref.IfState
// does not hold.
func (c *Client) Reschedule(ctx context.Context, ref Ref, due Due) (Info, error) {
	const op = "reschedule"
	if err := c.refer(ctx, op, ref, c.caps.Reschedule); err != nil {
		return Info{}, err
	}
	if err := due.when.Validate(op, ref); err != nil {
		return Info{}, err
	}
	if err := c.caps.CheckWhen(op, ref, due.when, c.now()); err != nil {
		return Info{}, err
	}
	info, err := c.eng.Reschedule(ctx, ref, due.when)
	return info, fail(op, ref, err)
}
