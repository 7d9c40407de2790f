package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Cancel removes a message. After nil no handler starts for it. ErrNotFound;
// ErrLeased when it came too late. By id it drops a dead message too.
func (c *Client) Cancel(ctx context.Context, queue string, ref Ref) error {
	const op = "cancel"
	ref.Queue = queue
	if err := c.refer(ctx, op, ref, c.caps.Cancel); err != nil {
		return err
	}
	if c.cancels != nil {
		itemErr, err := c.cancels.do(ctx, ref)
		if err == nil {
			err = itemErr
		}
		return fail(op, ref, err)
	}
	errs, err := c.eng.Cancel(ctx, []Ref{ref})
	if err == nil {
		err = errs[0]
	}
	return fail(op, ref, err)
}

// CancelMany cancels messages of any queues, each named in its Ref; each succeeds
// or fails alone. At most 10,000 at once.
func (c *Client) CancelMany(ctx context.Context, refs []Ref) ([]error, error) {
	const op = "cancel"
	if err := c.beginBatch(ctx, op, len(refs)); err != nil {
		return nil, err
	}
	if err := c.able(c.caps.Cancel, op, "", op); err != nil {
		return nil, err
	}
	errs := make([]error, len(refs))
	good, at := make([]Ref, 0, len(refs)), make([]int, 0, len(refs))
	for i, ref := range refs {
		if errs[i] = checkRef(op, ref); errs[i] == nil {
			good, at = append(good, ref), append(at, i)
		}
	}
	if len(good) == 0 {
		return errs, nil
	}
	got, err := c.eng.Cancel(ctx, good)
	if err != nil {
		return nil, fail(op, Ref{}, err)
	}
	for j, err := range got {
		errs[at[j]] = fail(op, good[j], err)
	}
	return errs, nil
}

// Reschedule moves the due time of a message that is scheduled or ready.
// ErrNotFound; ErrLeased when it came too late.
func (c *Client) Reschedule(ctx context.Context, queue string, ref Ref, due Due) (Info, error) {
	const op = "reschedule"
	ref.Queue = queue
	if err := c.refer(ctx, op, ref, c.caps.Reschedule); err != nil {
		return Info{}, err
	}
	if err := checkWhen(op, ref.Queue, ref.Key, due.when); err != nil {
		return Info{}, err
	}
	info, err := c.eng.Reschedule(ctx, ref, due.when)
	return info, fail(op, ref, err)
}

// Get looks a message up: by key the live one, else the newest dead one; by id
// any. ErrNotFound.
func (c *Client) Get(ctx context.Context, queue string, ref Ref) (Info, error) {
	const op = "get"
	ref.Queue = queue
	if err := c.refer(ctx, op, ref, c.caps.Get); err != nil {
		return Info{}, err
	}
	info, err := c.eng.Get(ctx, ref)
	return info, fail(op, ref, err)
}

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

// Claim leases one message if it is due, whoever else is waiting: settle on read.
// ErrNotDue, ErrLeased, ErrNotFound.
func (c *Client) Claim(ctx context.Context, queue string, ref Ref, opts LeaseOptions) (Lease, error) {
	const op = "claim"
	ref.Queue = queue
	cl, ok := c.eng.(engine.Claimer)
	if err := c.refer(ctx, op, ref, ok && c.caps.Claim); err != nil {
		return Lease{}, err
	}
	if err := checkTTR(op, queue, opts.TTR); err != nil {
		return Lease{}, err
	}
	l, err := cl.Claim(ctx, ref, engine.Want{Queue: queue, Max: 1, TTR: opts.TTR, Remote: opts.Remote})
	return l, fail(op, ref, err)
}
