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
