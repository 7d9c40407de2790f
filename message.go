package tarry

import "context"

// Message is a message as a handler gets it. Info holds everything else about it: ID,
// Queue, Key, Due, Created, Attempt (from 1), MaxAttempts, Headers, LastError (why the
// previous attempt failed).
type Message[T any] struct {
	// Body is the decoded body. It hides Info.Body, the raw bytes.
	Body T
	Info

	d *delivery
}

// Token is the token of the message's lease, for a handler that settles the message by
// itself where Settle does not reach, such as in another process. The same holds as for
// Settle. Token returns "" for a message that did not come from a worker or a claim. It may
// be called from any goroutine.
func (m *Message[T]) Token() string {
	if m.d == nil {
		return ""
	}
	m.d.tokenOut.Store(true)
	return m.d.lease.Token
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
