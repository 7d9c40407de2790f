package tarry

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
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
	return l, fail(op, ref, err)
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
	d := &delivery{w: w, h: h, lease: l, due: l.Due, claim: newClaimed()}
	if !c.enlist(w) { // closed meanwhile
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
		defer cancel()
		_, _ = c.eng.Settle(ctx, []engine.Settlement{release(d)})
		return errClosed("claim", ref.Queue)
	}
	return w.handleOne(ctx, d, sent)
}

// handleOne handles one lease, requested at sent, on the caller's goroutine.
func (w *Worker) handleOne(ctx context.Context, d *delivery, sent time.Time) error {
	if d.lease.TTR > 0 {
		d.term = termFor(sent, d.lease.TTR)
	}
	w.base = ctx
	w.tasks.Go(w.keep)
	w.mu.Lock()
	w.enter(d, w.now())
	w.running++
	d.h.running++
	late := d.stage == unsure
	w.mu.Unlock()
	go func() {
		<-w.stopped // by Close, or once the result is settled
		_ = w.drain("claim")
		w.c.dismiss(w)
	}()
	if late {
		<-d.claim.sure
	}
	w.mu.Lock()
	d.start()
	w.mu.Unlock()
	d.work()
	return d.claim.result(ctx, d)
}

// notStarted returns why the handler of a claim did not start.
func (w *Worker) notStarted() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.broken, ErrClosed) {
		return w.broken
	}
	return errLapsed
}

// claimed carries results from a claim's delivery to the goroutine that called Claim.
type claimed struct {
	sure    chan struct{}       // closed once its lease is confirmed, or need not be
	settled chan engine.Settled // the engine's answer
}

// answerClaim passes the engine's answer to the claim, and ends its worker.
func (d *delivery) answerClaim(s engine.Settled) {
	if d.claim != nil {
		d.claim.settled <- s
		d.w.end(errConcluded)
	}
}

func newClaimed() *claimed { return &claimed{make(chan struct{}), make(chan engine.Settled, 1)} }

// result waits for the engine's answer and returns the error of the claim.
func (o *claimed) result(ctx context.Context, d *delivery) error {
	ref := Ref{Queue: d.lease.Queue, ID: d.lease.ID, Key: d.lease.Key}
	var s engine.Settled
	select {
	case s = <-o.settled:
	case <-ctx.Done():
		timer := time.NewTimer(lastWord)
		defer timer.Stop()
		select {
		case s = <-o.settled:
		case <-timer.C:
			s.Err = ctx.Err()
		}
	}
	if d.stage < again && s.Err == nil {
		s.Err = d.w.notStarted()
	}
	err := fail("claim", ref, s.Err)
	switch {
	case d.err == nil:
		return err
	case err == nil:
		return d.err
	}
	return errors.Join(d.err, err)
}
