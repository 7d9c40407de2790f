package tarry

import "context"

// Cancel removes a message. After nil no handler starts for it. ErrNotFound;
// ErrLeased when it came too late. By id it drops a dead message too.
func (c *Client) Cancel(ctx context.Context, queue string, ref Ref) error {
	const op = "cancel"
	ref.Queue = queue
	if err := c.refer(ctx, op, ref, c.caps.Cancel); err != nil {
		return err
	}
	if c.cancels != nil {
		itemErr, err := c.cancels.Do(ctx, ref)
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
