package tarry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/internal/work"
)

// A HandleOption is an option of Handle.
type HandleOption interface{ applyHandle(h *handleOptions) }

type handleOptions struct {
	slots   int // 0: only the worker's bound
	timeout time.Duration
	within  []Middleware // runs inside the worker's middleware
}

type handleOption func(h *handleOptions)

func (o handleOption) applyHandle(h *handleOptions) { o(h) }

// Concurrency bounds how many messages of this queue are handled at a time, within the
// worker's own bound. It keeps a queue with slow handlers from taking all the worker's
// slots. At least 1. Default: the worker's bound.
func Concurrency(n int) HandleOption {
	if n < 1 {
		panic(fmt.Sprintf("tarry: Concurrency(%d): at least 1 is needed", n))
	}
	return handleOption(func(h *handleOptions) { h.slots = n })
}

// HandlerTimeout is WorkerConfig.HandlerTimeout for this queue alone; 0: none.
func HandlerTimeout(d time.Duration) HandleOption {
	if d < 0 {
		panic(fmt.Sprintf("tarry: HandlerTimeout(%s) is negative", d))
	}
	return handleOption(func(h *handleOptions) { h.timeout = d })
}

// WithMiddleware wraps the handler of this queue alone, or of a Topic.Claim, inside the
// worker's own middleware; the first outermost. Several such options add up.
func WithMiddleware(m ...Middleware) HandleOption {
	return handleOption(func(h *handleOptions) { h.within = append(h.within, m...) })
}

// Handle registers handler for the messages of a topic. Its return value decides: nil acks
// the message, Snooze, RetryIn, Bury and Settled do as they say, and any other error
// retries it after its backoff until its attempts are used up. A panic counts as an error.
// So does a body that does not fit T: a faulty release that cannot read the waiting messages
// loses none of them.
//
// The context ends when the handler's timeout is over, when the lease is lost, or when the
// worker's drain has taken too long; context.Cause says which. Handle panics when the queue
// has a handler already, and once Run was called.
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
		o.applyHandle(&set)
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
	outer := wrapped(func(ctx context.Context, m *Message[[]byte]) error { return run(ctx, m.d, &m.Info, m.Body) }, middleware)
	h.Handle = func(ctx context.Context, d *work.Delivery) error {
		l := d.Lease()
		return outer(ctx, &Message[[]byte]{Body: l.Body, Info: l.Info, d: d})
	}
	return h
}
