package tarry

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// extension is a handler's wish that its lease lasts longer.
type extension struct {
	by   time.Duration
	told chan<- error // has room for the answer
}

// errConcluded is the cause with which a handler's context ends when it has returned.
var errConcluded = fmt.Errorf("%w: its handler has returned", ErrLeaseLost)

// Deadline is when the lease of the message ends unless it is renewed, by this
// machine's clock. It moves on as the worker renews the lease, and with Extend. Zero:
// the lease has no end. It may be called from any goroutine.
func (m *Message[T]) Deadline() time.Time {
	if m.d == nil {
		return m.Info.Deadline
	}
	m.d.w.mu.Lock()
	defer m.d.w.mu.Unlock()
	if m.d.term.endless() {
		return time.Time{}
	}
	return m.d.term.end()
}

// Extend makes the lease last until by from now at least; never shorter than it would
// have. Workers renew leases while handlers run, so that a handler that merely takes
// long need not; it is for one that may come to a stop with its whole process, such as
// before the machine is suspended, as nobody else gets the message before the new
// Deadline. Once that is near the worker renews as always. by is 1 ms to 24 h.
//
// ErrLeaseLost when the message is another's by now, and once the handler has
// returned; the cause of the handler's context when that has ended; ErrUnsupported on
// an engine that extends no leases; any other error leaves the lease as it was, or
// extended. It may be called from any goroutine.
func (m *Message[T]) Extend(ctx context.Context, by time.Duration) error {
	const op = "extend"
	ref := Ref{Queue: m.Queue, ID: m.ID, Key: m.Key}
	switch d := m.d; {
	case by < MinTTR || by > MaxTTR:
		return engine.Invalid(op, ref, "a lease can be extended by %s to %s, not by %s", MinTTR, MaxTTR, by)
	case d == nil:
		return engine.Invalid(op, ref, "the message did not come from a worker or a claim")
	case !d.w.c.caps.Extend:
		return d.w.c.able(false, op, m.Queue, "extension of leases")
	default:
		return fail(op, ref, d.extend(ctx, by))
	}
}

// extend has the keeper ask for more time: it alone asks, so that no renewal on its
// way takes back what a later one has got.
func (d *delivery) extend(ctx context.Context, by time.Duration) error {
	w := d.w
	told := make(chan error, 1)
	w.mu.Lock()
	handler := d.ctx
	err := d.held(w.now())
	if err == nil {
		err = context.Cause(handler)
	}
	if err != nil || d.term.endless() {
		w.mu.Unlock()
		return err
	}
	d.wishes = append(d.wishes, extension{by, told})
	w.lookAt(d, w.now())
	w.mu.Unlock()
	select {
	case err := <-told:
		return err
	case <-handler.Done():
		return context.Cause(handler)
	case <-ctx.Done():
		if handler.Err() != nil { // ctx is made of it
			return context.Cause(handler)
		}
		return ctx.Err()
	}
}

// grant tells those who wished for more time what the engine said first.
func grant(wishes []extension, err error) {
	for _, x := range wishes {
		select {
		case x.told <- err:
		default:
		}
	}
}
