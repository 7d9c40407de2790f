package tarry

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/internal/sift"
)

// CancelResult is the result for one reference of CancelMany.
type CancelResult struct {
	Ref
	Err error // nil: removed; else an error of Cancel
}

// Cancel removes a message. Once it has returned nil, no handler starts for the message.
// Errors: ErrNotFound; ErrLeased when a worker already holds the message; ErrStale when
// ref.IfState does not hold. By id it drops a dead message too.
func (c *Client) Cancel(ctx context.Context, ref Ref) error {
	const op = "cancel"
	if err := c.refer(ctx, op, ref, c.caps.Cancel); err != nil {
		return err
	}
	if c.cancels != nil {
		itemErr, err := c.cancels.Do(ctx, ref)
		for p := (busyRetry{}); err == nil && p.again(ctx, itemErr); {
			itemErr, err = c.cancels.Do(ctx, ref)
		}
		if err == nil {
			err = itemErr
		}
		return fail(op, ref, overdue(ctx, err))
	}
	errs, err := c.eng.Cancel(ctx, []Ref{ref})
	if err == nil {
		err = errs[0]
	}
	return fail(op, ref, err)
}

// CancelMany cancels messages of any queues; each succeeds or fails alone, with its error
// in CancelResult.Err. The returned error is for the call as a whole. At most 10,000 at once.
func (c *Client) CancelMany(ctx context.Context, refs []Ref) ([]CancelResult, error) {
	const op = "cancel"
	if err := c.beginBatch(ctx, op, len(refs)); err != nil {
		return nil, err
	}
	if err := c.able(c.caps.Cancel, op, "", op); err != nil {
		return nil, err
	}
	refs = slices.Clone(refs) // the caller may reuse its slice if ctx ends early
	good, errs := sift.Items(refs, func(i int) error {
		if err := refs[i].Validate(op); err != nil {
			return err
		}
		return c.caps.CheckRef(op, refs[i])
	})
	out := make([]CancelResult, len(refs))
	for i, ref := range refs {
		out[i].Ref = ref
	}
	for i, err := range errs {
		out[i].Err = err
	}
	if len(good.Items) == 0 {
		return out, nil
	}
	got, err := c.eng.Cancel(ctx, good.Items)
	if err != nil {
		return nil, fail(op, Ref{}, err)
	}
	for j, err := range got {
		out[good.At(j)].Err = fail(op, good.Items[j], err)
	}
	return out, nil
}
