package tarry

import "context"

// HandlerFunc handles one message whose body is not decoded yet. nil acks it, a
// verdict (Snooze, RetryIn, Bury) is obeyed, and any other error retries it.
type HandlerFunc func(ctx context.Context, m *Message[[]byte]) error

// Middleware wraps the handling of each message: tracing, logging, decryption. It
// sees the raw message, may change its Body and the context, and answers with the
// error of next or its own. A message that its guard dropped comes back as nil.
type Middleware func(next HandlerFunc) HandlerFunc

// wrapped returns h inside all middleware, the first outermost.
func wrapped(h HandlerFunc, middleware []Middleware) HandlerFunc {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}
