package tarry

// Message is a message in the hands of a handler. Its Info tells everything else
// about it: ID, Queue, Key, Due, Created, Attempt (1 in the first), MaxAttempts,
// Headers, LastError (why the attempt before failed).
type Message[T any] struct {
	// Body is the decoded body. It hides the bytes, which are Info.Body.
	Body T
	Info

	d *delivery
}

// Token is the token of the message's lease, for a handler that settles the message by
// itself: with Client.Settle, or within a transaction of its own. It should do so as the
// last thing and then return Settled. It may be called from any goroutine; "" of a message
// that did not come from a worker or a claim.
//
// The worker renews the lease all the same. Once the message is settled, as when another
// has it, a renewal finds the lease lost and the handler's context ends.
func (m *Message[T]) Token() string {
	if m.d == nil {
		return ""
	}
	m.d.tokenOut.Store(true)
	return m.d.lease.Token
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
