package tarry

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Claim leases one message if it is due, whoever else is waiting: settle on read.
// ErrNotDue, ErrLeased, ErrNotFound.
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

// Claim settles on read: whoever meets an overdue message takes it and handles it
// there and then, on its own goroutine, with all that a Worker does for a message.
// The lease is renewed while handler runs. Options are those of Handle; Concurrency
// has no meaning here. What handler returns decides as in Handle: nil acks, Snooze,
// RetryIn, Bury and Settled do as they say, any other error or a panic retries the
// message after its backoff until its attempts are used up. A guard that says no acks it
// too.
//
// handler's context ends with ctx, when its Timeout is over, or when the lease is
// lost. One that gives up because ctx was cancelled gives the message back, its
// attempt not counted; a deadline of ctx counts.
//
// Claim returns nil when the message is acked, or settled by handler itself, else what
// handler returned; joined with ErrLeaseLost when somebody else had decided on the
// message by then, or ErrUnconfirmed when it cannot be known. When there is nothing to take: ErrNotDue, ErrLeased, ErrNotFound. It
// returns within a second of handler when ctx has ended; what the engine was not told yet
// it is told in the background.
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
	d := &delivery{w: w, h: h, lease: l, due: l.Due, one: newOne()}
	if !c.enlist(w) { // closed meanwhile
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
		defer cancel()
		_, _ = c.eng.Settle(ctx, []engine.Settlement{release(d)})
		return errClosed("claim", ref.Queue)
	}
	return w.handleOne(ctx, d, sent)
}

// handleOne handles one lease, which was asked for at sent, on the caller's
// goroutine.
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
		<-w.stopped // by Close, or when the engine knows the result
		_ = w.drain("claim")
		w.c.dismiss(w)
	}()
	if late {
		<-d.one.sure
	}
	w.mu.Lock()
	d.start()
	w.mu.Unlock()
	d.work()
	return d.one.result(ctx, d)
}

// unbegun is why the handler of a claim was not begun.
func (w *Worker) unbegun() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(w.broken, ErrClosed) {
		return w.broken
	}
	return errLapsed
}

// one is what a delivery that is no worker's tells the goroutine that runs it.
type one struct {
	sure    chan struct{}       // closed when its lease need not be confirmed any more
	settled chan engine.Settled // what the engine says of it
}

// tell tells the claim what the engine says of its message, after which the worker ends.
func (d *delivery) tell(s engine.Settled) {
	if d.one != nil {
		d.one.settled <- s
		d.w.end(errConcluded)
	}
}

func newOne() *one { return &one{make(chan struct{}), make(chan engine.Settled, 1)} }

// result waits for the engine and says what became of the message.
func (o *one) result(ctx context.Context, d *delivery) error {
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
		s.Err = d.w.unbegun()
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
