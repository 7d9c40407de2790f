package tarry

import (
	"cmp"
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// ByKey names the message that holds a key, in the queue of the Topic. Calls of a Client
// need the queue as well: ByKey("42").Of("order.unpaid").
func ByKey(key string) Ref { return Ref{Key: key} }

// ByID names a message by its id, in the queue of the Topic. Calls of a Client need the
// queue as well: ByID(id).Of("order.unpaid").
func ByID(id ID) Ref { return Ref{ID: id} }

// beginRef makes the checks common to all calls on one message.
func (c *Client) beginRef(ctx context.Context, op string, ref Ref, can bool) error {
	return cmp.Or(c.begin(ctx, op, ref.Queue), ref.Validate(op), c.caps.CheckRef(op, ref), c.able(can, op, ref.Queue, op))
}

// ref completes a reference with the topic's queue. A reference to another queue is
// ErrInvalid.
func (t *Topic[T]) ref(op string, ref Ref) (Ref, error) {
	if ref.Queue != "" && ref.Queue != t.queue {
		return ref, engine.Invalid(op, Ref{Queue: t.queue, Key: ref.Key}, "the reference names a message of the queue %q, not of the topic's", engine.Clip(ref.Queue))
	}
	return ref.Of(t.queue), nil
}

// by completes a reference with the canceller, where the engine's history keeps that.
func (c *Client) by(ref Ref) Ref {
	if c.caps.History {
		ref.By = cmp.Or(ref.By, processName())
	}
	return ref
}

// CancelResult is the result for one reference of CancelMany.
type CancelResult struct {
	Ref
	Err error // nil: removed; else an error of Cancel
}

// Cancel removes a message. Once it has returned nil, no handler starts for the message.
// Errors: ErrNotFound; ErrLeased when a worker already holds the message; ErrStale when
// ref.IfState does not hold. By id it drops a dead message too. ref.By, by default host:pid,
// is kept in the history.
func (c *Client) Cancel(ctx context.Context, ref Ref) error {
	const op = "cancel"
	if err := c.beginRef(ctx, op, ref, c.caps.Cancel); err != nil {
		return err
	}
	ref = c.by(ref)
	if c.cancels != nil {
		itemErr, err := c.cancels.Do(ctx, ref)
		for p := (calls.BusyRetry{}); err == nil && p.Again(ctx, itemErr); {
			itemErr, err = c.cancels.Do(ctx, ref)
		}
		return calls.Fail(op, ref, calls.Overdue(ctx, cmp.Or(err, itemErr)))
	}
	errs, err := c.eng.Cancel(ctx, []Ref{ref})
	if err == nil {
		err = errs[0]
	}
	return calls.Fail(op, ref, err)
}

// CancelMany cancels messages of any queues; each succeeds or fails alone, with its error
// in CancelResult.Err. The returned error is for the call as a whole. At most 10,000 at once.
func (c *Client) CancelMany(ctx context.Context, refs []Ref) ([]CancelResult, error) {
	const op = "cancel"
	if err := cmp.Or(c.beginBatch(ctx, op, len(refs)), c.able(c.caps.Cancel, op, "", op)); err != nil {
		return nil, err
	}
	refs = slices.Clone(refs) // the caller may reuse its slice if ctx ends early
	good, errs := calls.Sift(refs, func(i int) error { return cmp.Or(refs[i].Validate(op), c.caps.CheckRef(op, refs[i])) })
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
	for i := range good.Items {
		good.Items[i] = c.by(good.Items[i])
	}
	got, err := c.eng.Cancel(ctx, good.Items)
	if err != nil {
		return nil, calls.Fail(op, Ref{}, err)
	}
	for j, err := range got {
		out[good.At(j)].Err = calls.Fail(op, good.Items[j], err)
	}
	return out, nil
}

// Reschedule moves the due time of a message that is scheduled or ready. Errors:
// ErrNotFound; ErrLeased when a worker already holds the message; ErrStale when ref.IfState
// does not hold.
func (c *Client) Reschedule(ctx context.Context, ref Ref, due Due) (Info, error) {
	const op = "reschedule"
	err := cmp.Or(c.beginRef(ctx, op, ref, c.caps.Reschedule), due.when.Validate(op, ref), c.caps.CheckWhen(op, ref, due.when, c.now()))
	if err != nil {
		return Info{}, err
	}
	info, err := c.eng.Reschedule(ctx, ref, due.when)
	return info, calls.Fail(op, ref, err)
}

// Claim leases one message if it is due, ahead of any waiting lease: settle on read. With
// ref.IfState it takes what is in that state, also what is scheduled or dead, and also from a
// paused queue. Errors: ErrNotDue, ErrLeased, ErrNotFound; with IfState also ErrStale, and
// ErrExists when a live message holds the key of the dead one.
func (c *Client) Claim(ctx context.Context, ref Ref, opts LeaseOptions) (Lease, error) {
	const op = "claim"
	cl, ok := c.eng.(engine.Claimer)
	wrong := cmp.Or(engine.CheckTTR(op, ref.Queue, opts.TTR), engine.CheckWorker(op, ref.Queue, opts.Worker))
	if err := cmp.Or(c.beginRef(ctx, op, ref, ok && c.caps.Claim), wrong, c.ableFor(op, ref.Queue, opts.Remote)); err != nil {
		return Lease{}, err
	}
	l, err := cl.Claim(ctx, ref, engine.Want{Queue: ref.Queue, Max: 1, TTR: opts.TTR, Remote: opts.Remote, Worker: opts.Worker})
	return l, calls.Fail(op, ref, err)
}

// Claim settles on read: code that comes across an overdue message handles it at once, on
// the caller's goroutine, in the same way as a Worker does. The lease is renewed while
// handler runs. Claim takes the options of Handle; Concurrency has no effect. handler's
// return value decides, as in Handle: nil acks the message; Snooze, RetryIn, Bury and
// Settled do as they say; any other error or a panic retries it after its backoff until its
// attempts are used up. A guard that returns false acks it too.
//
// handler's context ends with ctx, after the HandlerTimeout, or when the lease is lost. If
// handler gives up because ctx was cancelled, the message is released and the attempt does
// not count. If ctx reached its deadline, the attempt counts.
//
// Claim returns nil when the message is acked or handler has settled it. Otherwise it
// returns handler's error, joined with ErrLeaseLost when the message was taken over or
// cancelled meanwhile, or with ErrUnconfirmed when the outcome is unknown. When there is
// nothing to claim it returns ErrNotDue, ErrLeased or ErrNotFound. Once ctx has ended,
// Claim returns within a second of handler, and sends a pending settlement in the background.
func (t *Topic[T]) Claim(ctx context.Context, c *Client, ref Ref, handler func(context.Context, *Message[T]) error, opts ...HandleOption) error {
	w := NewWorker(c, nil)
	h := newHandling(w, t, handler, opts)
	ref, err := t.ref("claim", ref)
	if err != nil {
		return err
	}
	if err := c.runsHandlers("claim", ref.Queue); err != nil {
		return err
	}
	sent := c.now()
	l, err := c.Claim(ctx, ref, LeaseOptions{Worker: w.cfg.Name})
	if err != nil {
		return err
	}
	if !c.enlist(w.work) { // closed meanwhile
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calls.LastWord)
		defer cancel()
		_, _ = c.eng.Settle(ctx, engine.Releases([]Lease{l}))
		return errClosed("claim", ref.Queue)
	}
	return w.work.HandleOne(ctx, h, l, sent, func() { c.dismiss(w.work) })
}
