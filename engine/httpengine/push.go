package httpengine

import (
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Push makes as few requests as the server's limits allow. When one after the first fails,
// each of its messages gets the error.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, 0, len(msgs))
	if len(msgs) == 0 {
		return results, e.emptyCall(ctx, "push")
	}
	for start := 0; start < len(msgs); {
		body, n := e.batch(msgs[start:], false)
		part := msgs[start : start+n]
		got, err := e.push(ctx, part, body)
		if err != nil {
			if start == 0 && n == len(msgs) {
				return nil, err
			}
			got = slices.Repeat([]engine.PushResult{{Err: err}}, n)
		}
		results = append(results, got...)
		start += n
	}
	return results, nil
}

// PushAtomic pushes all messages in one request, or none.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if len(msgs) == 0 {
		return nil, e.emptyCall(ctx, "push")
	}
	body, n := e.batch(msgs, true)
	if n < len(msgs) {
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

func (e *Engine) push(ctx context.Context, msgs []engine.Message, body []byte) ([]engine.PushResult, error) {
	c := call{op: "push", method: http.MethodPost, path: "/v1/messages", body: body}
	if len(msgs) == 1 {
		c.ref = engine.Ref{Queue: msgs[0].Queue, Key: msgs[0].Key}
	}
	if err := e.calls.Enter(ctx, c.op); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
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

// emptyCall returns the error of a call without items.
func (e *Engine) emptyCall(ctx context.Context, op string) error {
	err := e.calls.Enter(ctx, op)
	if err == nil {
		e.calls.Leave()
	}
	return err
}
