package tarry

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// handling is how a worker handles one queue.
type handling struct {
	queue   string
	handle  func(context.Context, *delivery) error
	slots   int // concurrent handlers; 0: only the worker's bound
	timeout time.Duration
	within  []Middleware // runs inside the worker's middleware

	free atomic.Int64 // free slots; written with Worker.mu held

	// Guarded by Worker.mu.
	running int // handlers
	queued  int // leased, not started
	line    line
	next    *handling // after it in the turn
	inTurn  bool
}

// A HandleOption is an option of Handle.
type HandleOption interface{ applyHandle(h *handling) }

type handleOption func(h *handling)

func (o handleOption) applyHandle(h *handling) { o(h) }

// Concurrency bounds how many messages of this queue are handled at a time, within the
// worker's own bound. It keeps a queue with slow handlers from taking all the worker's
// slots. At least 1. Default: the worker's bound.
func Concurrency(n int) HandleOption {
	if n < 1 {
		panic(fmt.Sprintf("tarry: Concurrency(%d): at least 1 is needed", n))
	}
	return handleOption(func(h *handling) { h.slots = n })
}

// HandlerTimeout is WorkerConfig.HandlerTimeout for this queue alone; 0: none.
func HandlerTimeout(d time.Duration) HandleOption {
	if d < 0 {
		panic(fmt.Sprintf("tarry: HandlerTimeout(%s) is negative", d))
	}
	return handleOption(func(h *handling) { h.timeout = d })
}

// WithMiddleware wraps the handler of this queue alone, or of a Topic.Claim, inside the
// worker's own middleware; the first outermost. Several such options add up.
func WithMiddleware(m ...Middleware) HandleOption {
	return handleOption(func(h *handling) { h.within = append(h.within, m...) })
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
	w.register(newHandling(w, t, handler, opts))
}

// newHandling returns how messages of a topic are handled.
func newHandling[T any](w *Worker, t *Topic[T], handler func(context.Context, *Message[T]) error, opts []HandleOption) *handling {
	if handler == nil {
		panic("tarry: queue " + t.queue + ": the handler is nil")
	}
	h := &handling{queue: t.queue, timeout: w.cfg.HandlerTimeout}
	for _, o := range opts {
		o.applyHandle(h)
	}
	run := func(ctx context.Context, d *delivery, info *Info, body []byte) error {
		m := &Message[T]{Info: *info, d: d}
		if err := t.codec.Decode(body, &m.Body); err != nil {
			return fmt.Errorf("the body does not fit the topic's type %T: %w", m.Body, err)
		}
		for _, guard := range t.guards {
			if err := d.proceed(ctx); err != nil {
				return err
			}
			wanted, err := guard(ctx, m)
			if err != nil {
				return err
			}
			if !wanted {
				d.named = Dropped
				return nil
			}
		}
		if err := d.proceed(ctx); err != nil {
			return err
		}
		return handler(ctx, m)
	}
	middleware := slices.Concat(w.cfg.Middleware, h.within)
	if len(middleware) == 0 {
		h.handle = func(ctx context.Context, d *delivery) error { return run(ctx, d, &d.lease.Info, d.lease.Body) }
		return h
	}
	outer := wrapped(func(ctx context.Context, m *Message[[]byte]) error { return run(ctx, m.d, &m.Info, m.Body) }, middleware)
	h.handle = func(ctx context.Context, d *delivery) error {
		return outer(ctx, &Message[[]byte]{Body: d.lease.Body, Info: d.lease.Info, d: d})
	}
	return h
}
