package tarry

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// extension is a handler's request that its lease last longer.
type extension struct {
	by     time.Duration
	answer chan<- error // buffered
}

// errConcluded is the cause of a handler's context once the handler has returned.
var errConcluded = fmt.Errorf("%w: its handler has returned", ErrLeaseLost)

// Deadline returns when the lease of the message ends unless it is renewed, by this
// machine's clock. Renewals and Extend move it. Zero: the lease has no end. It may be
// called from any goroutine.
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

// Extend makes the lease last at least until by from now; it never shortens it. A handler
// that merely takes long need not call it, since workers renew leases while handlers run.
// It is for a process that may stop as a whole, such as before the machine is suspended: no
// other worker gets the message before the new Deadline. Close to it the worker renews as
// always. by is 1 ms to 24 h.
//
// Errors: ErrLeaseLost when another worker has the message, and once the handler has
// returned; the cause of the handler's context when that has ended; ErrUnsupported on an
// engine that cannot extend leases. After any other error the lease may have been extended
// or not. It may be called from any goroutine.
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

// extend passes the request to the keeper. Only the keeper extends leases, so that a
// renewal under way cannot undo a longer one.
func (d *delivery) extend(ctx context.Context, by time.Duration) error {
	w := d.w
	answer := make(chan error, 1)
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
	d.wishes = append(d.wishes, extension{by, answer})
	w.lookAt(d, w.now())
	w.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-handler.Done():
		return context.Cause(handler)
	case <-ctx.Done():
		if handler.Err() != nil { // ctx derives from it
			return context.Cause(handler)
		}
		return ctx.Err()
	}
}

// grant answers pending extensions with the engine's first answer.
func grant(wishes []extension, err error) {
	for _, x := range wishes {
		select {
		case x.answer <- err:
		default:
		}
	}
}
