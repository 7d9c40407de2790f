package tarry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/work"
)

// A HandleOption is an option of Handle.
type HandleOption func(h *handleOptions)

type handleOptions struct {
	slots   int // 0: only the worker's bound
	timeout time.Duration
	within  []Middleware // runs inside the worker's middleware
}

// Concurrency bounds how many messages of this queue are handled at a time, within the
// worker's own bound. It keeps a queue with slow handlers from taking all the worker's
// slots. At least 1. Default: the worker's bound.
func Concurrency(n int) HandleOption {
	if n < 1 {
		panic(fmt.Sprintf("tarry: Concurrency(%d): at least 1 is needed", n))
	}
	return func(h *handleOptions) { h.slots = n }
}

// HandlerTimeout is WorkerConfig.HandlerTimeout for this queue alone; 0: none.
func HandlerTimeout(d time.Duration) HandleOption {
	if d < 0 {
		panic(fmt.Sprintf("tarry: HandlerTimeout(%s) is negative", d))
	}
	return func(h *handleOptions) { h.timeout = d }
}

// WithMiddleware wraps the handler of this queue alone, or of a Topic.Claim, inside the
// worker's own middleware; the first outermost. Several such options add up.
func WithMiddleware(m ...Middleware) HandleOption {
	return func(h *handleOptions) { h.within = append(h.within, m...) }
}

// Handle registers handler for the messages of a topic. handler's return value decides: nil
// acks the message; Snooze, RetryIn, Bury and Settled do as they say; any other error
// retries it after its backoff until its attempts are used up. A panic counts as an error,
// and so does a body that does not fit T: a faulty release that cannot read the waiting
// messages must lose none of them.
//
// handler's context ends when its timeout is over, when the lease is lost, or when the
// worker's drain has taken too long; context.Cause says which. Handle panics when the queue
// has a handler already, and once Run has been called.
func Handle[T any](w *Worker, t *Topic[T], handler func(context.Context, *Message[T]) error, opts ...HandleOption) {
	w.work.Register(newHandling(w, t, handler, opts))
}

// newHandling returns how messages of a topic are handled.
func newHandling[T any](w *Worker, t *Topic[T], handler func(context.Context, *Message[T]) error, opts []HandleOption) *work.Handling {
	if handler == nil {
		panic("tarry: queue " + t.queue + ": the handler is nil")
	}
	set := handleOptions{timeout: w.cfg.HandlerTimeout}
	for _, o := range opts {
		o(&set)
	}
	h := &work.Handling{Queue: t.queue, Slots: set.slots, Timeout: set.timeout}
	run := func(ctx context.Context, d *work.Delivery, info *Info, body []byte) error {
		m := &Message[T]{Info: *info, d: d}
		if err := t.codec.Decode(body, &m.Body); err != nil {
			return fmt.Errorf("the body does not fit the topic's type %T: %w", m.Body, err)
		}
		for _, guard := range t.guards {
			if err := d.Proceed(ctx); err != nil {
				return err
			}
			wanted, err := guard(ctx, m)
			if err != nil {
				return err
			}
			if !wanted {
				d.Drop()
				return nil
			}
		}
		if err := d.Proceed(ctx); err != nil {
			return err
		}
		return handler(ctx, m)
	}
	middleware := slices.Concat(w.cfg.Middleware, set.within)
	if len(middleware) == 0 {
		h.Handle = func(ctx context.Context, d *work.Delivery) error { return run(ctx, d, &d.Lease().Info, d.Lease().Body) }
		return h
	}
	outer := wrapHandler(func(ctx context.Context, m *Message[[]byte]) error { return run(ctx, m.d, &m.Info, m.Body) }, middleware)
	h.Handle = func(ctx context.Context, d *work.Delivery) error {
		l := d.Lease()
		return outer(ctx, &Message[[]byte]{Body: l.Body, Info: l.Info, d: d})
	}
	return h
}

// Message is a message as a handler gets it. Info holds everything else about it: ID,
// Queue, Key, Due, Created, Attempt (from 1), MaxAttempts, Headers, LastError (why the
// previous attempt failed).
type Message[T any] struct {
	// Body is the decoded body. It hides Info.Body, the raw bytes.
	Body T
	Info

	d *work.Delivery
}

// Token returns the token of the message's lease, for a handler that settles the message
// where Settle cannot, such as from another process, or replaces it (see ReplaceLeased). The
// rules of Settle apply. Token returns "" for a message that did not come from a worker or a
// claim. It may be called from any goroutine.
func (m *Message[T]) Token() string {
	if m.d == nil {
		return ""
	}
	return m.d.Token()
}

// Settle lets a handler settle its message through c: the worker's client, or one with an
// engine that runs inside a transaction. Settle fills in the message's token. A handler
// should call it last, and then return Settled.
//
// The worker keeps renewing the lease. Once the message is settled, or taken over by
// another worker, a renewal finds the lease lost and the handler's context ends.
func (m *Message[T]) Settle(ctx context.Context, c *Client, s Settlement) error {
	s.Token = m.Token()
	out, err := c.Settle(ctx, []Settlement{s})
	if err != nil {
		return err
	}
	return out[0].Err
}

// Header returns the value of the first header with this name, or "".
func (m *Message[T]) Header(name string) string {
	for _, h := range m.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// LastAttempt reports whether the message is dead if this attempt fails.
func (m *Message[T]) LastAttempt() bool { return m.Attempt >= m.MaxAttempts }

// Deadline returns when the lease of the message ends unless it is renewed, by this
// machine's clock. Renewals and Extend move it. Zero: the lease has no end. It may be
// called from any goroutine.
func (m *Message[T]) Deadline() time.Time {
	if m.d == nil {
		return m.Info.Deadline
	}
	return m.d.Deadline()
}

// Extend makes the lease last for at least by from now; it never shortens the lease. A
// handler that merely takes long need not call it, since workers renew leases while handlers
// run. It is for a process that may stop as a whole, such as before the machine is
// suspended: no other worker gets the message before the new Deadline. Close to that, the
// worker renews as always. by is 1 ms to 24 h.
//
// Errors: ErrLeaseLost when another worker has the message, and once the handler has
// returned; the cause of the handler's context when that has ended; ErrUnsupported on an
// engine that cannot extend leases. After any other error the lease may have been extended
// or not. Extend may be called from any goroutine.
func (m *Message[T]) Extend(ctx context.Context, by time.Duration) error {
	const op = "extend"
	ref := Ref{Queue: m.Queue, ID: m.ID, Key: m.Key}
	switch {
	case by < MinTTR || by > MaxTTR:
		return engine.Invalid(op, ref, "a lease can be extended by %s to %s, not by %s", MinTTR, MaxTTR, by)
	case m.d == nil:
		return engine.Invalid(op, ref, "the message did not come from a worker or a claim")
	}
	return calls.Fail(op, ref, m.d.Extend(ctx, by))
}
