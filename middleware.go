package tarry

import (
	"context"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/internal/calls"
)

// PushCall is a pushing call as push middleware sees it.
type PushCall struct {
	// Drafts are the messages, at least one; exactly one for Push, PushDraft and Rearm. The
	// slice and the headers are copies: middleware may set fields, and add, change and
	// remove headers. It may replace a Body, but must not write to one: the caller owns it.
	Drafts []Draft

	// Atomic says that all messages are pushed or none: PushAtomic.
	Atomic bool

	single bool // Push, PushDraft or Rearm
}

// PushFunc pushes the messages of a call. It returns one Pushed for each draft, in order.
// Pushed.Err is set for a message that failed alone, even if it is the only one. An error
// means that the call as a whole failed: nothing was pushed, or the outcome is unknown.
type PushFunc func(ctx context.Context, call PushCall) ([]Pushed, error)

// PushMiddleware wraps each call that pushes, by a client or a topic: Push, PushDraft,
// PushMany, PushAtomic and Rearm. It is called once, when the client is made. The function
// that it returns runs for each call, on the caller's goroutine and concurrently. That
// function may change the drafts and the context, call next once, several times or not at
// all, and return the results of next or its own.
//
// The first of several is outermost. Limits are checked after all middleware, on the
// messages that it passed on. Values that a topic cannot encode, and calls without messages,
// do not reach middleware. A panic of middleware reaches the caller of Push. Clients made by
// Client.On, such as those of InTx, have the middleware of the original client.
type PushMiddleware func(next PushFunc) PushFunc

// wrapPushes puts the middleware around the pushes of a client.
func (c *Client) wrapPushes(middleware []PushMiddleware) {
	if len(middleware) == 0 {
		return
	}
	c.middleware = slices.Clone(middleware)
	c.outerPush = c.innerPush
	for _, m := range slices.Backward(c.middleware) {
		c.outerPush = m(c.outerPush)
	}
}

// innerPush is the innermost PushFunc.
func (c *Client) innerPush(ctx context.Context, call PushCall) ([]Pushed, error) {
	switch {
	case call.Atomic:
		return c.innerPushAtomic(ctx, call.Drafts)
	case !call.single || len(call.Drafts) != 1:
		return c.innerPushMany(ctx, call.Drafts)
	}
	p, err := c.innerPushOne(ctx, &call.Drafts[0])
	p.Err = err
	return []Pushed{p}, nil
}

// viaMiddleware pushes a copy of the drafts through the middleware.
func (c *Client) viaMiddleware(ctx context.Context, call PushCall) ([]Pushed, error) {
	const op = "push"
	if err := c.beginBatch(ctx, op, len(call.Drafts)); err != nil {
		return nil, err
	}
	drafts := call.Drafts
	call.Drafts = slices.Clone(drafts)
	for i := range call.Drafts {
		call.Drafts[i].Headers = slices.Clone(drafts[i].Headers)
	}
	out, err := c.outerPush(ctx, call)
	switch {
	case err != nil && len(drafts) == 1:
		return nil, calls.Fail(op, Ref{Queue: drafts[0].Queue, Key: drafts[0].Key}, err)
	case err != nil:
		return nil, calls.Fail(op, Ref{}, err)
	case len(out) != len(drafts):
		return nil, &Error{Op: op, Err: ErrInvalid,
			Hint: fmt.Sprintf("push middleware answered with %d results for %d messages; it must give one each", len(out), len(drafts))}
	}
	for i := range out {
		out[i].Err = calls.Fail(op, Ref{Queue: drafts[i].Queue, Key: drafts[i].Key}, out[i].Err)
	}
	return out, nil
}

// oneViaMiddleware is viaMiddleware for one message.
func (c *Client) oneViaMiddleware(ctx context.Context, m Draft) (Pushed, error) {
	out, err := c.viaMiddleware(ctx, PushCall{Drafts: []Draft{m}, single: true})
	if err != nil {
		return Pushed{}, err
	}
	p := out[0]
	err, p.Err = p.Err, nil
	return p, err
}

// HandlerFunc handles one message with a body that is not decoded yet. nil acks it, a
// verdict (Snooze, RetryIn, Bury, Settled) is obeyed, and any other error retries it.
type HandlerFunc func(ctx context.Context, m *Message[[]byte]) error

// Middleware wraps the handling of each message: tracing, logging, decryption. It sees the
// raw message, may change its Body and the context, and returns the error of next or its
// own; Verdict says what that error does to the message. When a guard drops the message,
// next returns nil.
type Middleware func(next HandlerFunc) HandlerFunc

// wrapHandler returns h inside all middleware, the first outermost.
func wrapHandler(h HandlerFunc, middleware []Middleware) HandlerFunc {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}
