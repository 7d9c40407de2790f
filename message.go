package tarry

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/work"
)

// Message is a message as a handler gets it. Info holds everything else about it: ID,
// Queue, Key, Due, Created, Attempt (from 1), MaxAttempts, Headers, LastError (why the
// previous attempt failed).
type Message[T any] struct {
	// Body is the decoded body. It hides Info.Body, the raw bytes.
	Body T
	Info

	d *work.Delivery
}

// Token is the token of the message's lease, for a handler that settles the message by
// itself where Settle does not reach, such as in another process. The same holds as for
// Settle. Token returns "" for a message that did not come from a worker or a claim. It may
// be called from any goroutine.
func (m *Message[T]) Token() string {
	if m.d == nil {
		return ""
	}
	return m.d.Token()
}

// Settle settles the message within its handler: through c, which may be the worker's
// client, or one whose engine runs inside a transaction. The message's token is filled in.
// A handler should do so last, and then return Settled.
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
	switch {
	case by < MinTTR || by > MaxTTR:
		return engine.Invalid(op, ref, "a lease can be extended by %s to %s, not by %s", MinTTR, MaxTTR, by)
	case m.d == nil:
		return engine.Invalid(op, ref, "the message did not come from a worker or a claim")
	}
	return calls.Fail(op, ref, m.d.Extend(ctx, by))
}
