package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Claim leases one message if it is due, ahead of any waiting lease: settle on read.
// Errors: ErrNotDue, ErrLeased, ErrNotFound.
func (c *Client) Claim(ctx context.Context, ref Ref, opts LeaseOptions) (Lease, error) {
	const op = "claim"
	cl, ok := c.eng.(engine.Claimer)
	if err := c.refer(ctx, op, ref, ok && c.caps.Claim); err != nil {
		return Lease{}, err
	}
	if err := engine.CheckTTR(op, ref.Queue, opts.TTR); err != nil {
		return Lease{}, err
	}
	if err := c.able(c.caps.RemoteLeases || !opts.Remote, op, ref.Queue, "leases for other processes"); err != nil {
		return Lease{}, err
	}
	l, err := cl.Claim(ctx, ref, engine.Want{Queue: ref.Queue, Max: 1, TTR: opts.TTR, Remote: opts.Remote})
	return l, calls.Fail(op, ref, err)
}

// Claim settles on read: code that comes across an overdue message handles it at once, on
// the caller's goroutine, in the same way as a Worker does. The lease is renewed while
// handler runs. Options are those of Handle; Concurrency has no meaning here. handler's
// return value decides, as in Handle: nil acks, Snooze, RetryIn, Bury and Settled do as
// they say, any other error or a panic retries the message after its backoff until its
// attempts are used up. A guard that returns false acks it too.
//
// handler's context ends with ctx, when its Timeout is over, or when the lease is lost. If
// handler gives up because ctx was cancelled, the message is released and the attempt does
// not count. If ctx reached its deadline, the attempt counts.
//
// Claim returns nil when the message is acked, or settled by handler itself; otherwise
// handler's error. That is joined with ErrLeaseLost when the message was taken over or
// cancelled meanwhile, or with ErrUnconfirmed when the outcome is unknown. When there is
// nothing to claim it returns ErrNotDue, ErrLeased or ErrNotFound. Once ctx has ended it
// returns within a second of handler; a pending settlement is sent in the background.
func (t *Topic[T]) Claim(ctx context.Context, c *Client, ref Ref, handler func(context.Context, *Message[T]) error, opts ...HandleOption) error {
	w := NewWorker(c, nil)
	h := newHandling(w, t, handler, opts)
	ref, err := t.ref("claim", ref)
	if err != nil {
		return err
	}
	sent := c.now()
	l, err := c.Claim(ctx, ref, LeaseOptions{})
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
