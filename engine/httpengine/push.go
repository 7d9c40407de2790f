package httpengine

import (
	"context"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Push makes as few requests as the server's limits allow. When one after the first fails,
// each of its messages gets the error.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return inParts(ctx, e, "push", msgs, func(rest []engine.Message) (int, []engine.PushResult, error) {
		body, n := e.batch(rest, false)
		got, err := e.push(ctx, rest[:n], body)
		return n, got, err
	}, func(err error) engine.PushResult { return engine.PushResult{Err: err} })
}

// PushAtomic pushes all messages in one request, or none.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	body, n := e.batch(msgs, true)
	switch {
	case len(msgs) == 0:
		return nil, nil
	case n < len(msgs):
		return nil, &engine.Error{Op: "push", Err: engine.ErrTooLarge, Hint: "the batch is larger than the server's largest request"}
	}
	return e.push(ctx, msgs, body)
}

// batch encodes as many messages as fit into a request, at least one, and returns how many.
func (e *Engine) batch(msgs []engine.Message, atomic bool) (body []byte, n int) {
	size := 64
	for i := range msgs[:min(len(msgs), 8)] {
		size = max(size, len(msgs[i].Body)*4/3+len(msgs[i].Key)+256)
	}
	body = make([]byte, 0, min(size*len(msgs)+64, e.limits.MaxRequest+64))
	return wire.AppendBatch(body, msgs, atomic, e.limits.MaxBatch, e.limits.MaxRequest)
}

// push makes one request within a call that has begun.
func (e *Engine) push(ctx context.Context, msgs []engine.Message, body []byte) ([]engine.PushResult, error) {
	c := call{op: "push", method: http.MethodPost, path: "/v1/messages", body: body}
	if len(msgs) == 1 {
		c.ref = engine.Ref{Queue: msgs[0].Queue, Key: msgs[0].Key}
	}
	all, err := askEach(ctx, e, c, len(msgs), wire.PushResult, func(i int, p *wire.Pushed) engine.PushResult {
		p.Err = failed(p.Err, "push", engine.Ref{Queue: msgs[i].Queue, Key: msgs[i].Key})
		return p.PushResult
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Err == nil && all[i].Outcome != engine.Kept {
			e.watch.Hint(msgs[i].Queue)
		}
	}
	return all, nil
}
