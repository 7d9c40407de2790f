package httpengine

import (
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Push pushes in as few requests as the server's limits allow. When a request after
// the first fails, what it concerns gets the error as its own.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, 0, len(msgs))
	if len(msgs) == 0 {
		return results, e.idle(ctx, "push")
	}
	for start := 0; start < len(msgs); {
		body, n := e.batch(msgs[start:])
		part := msgs[start : start+n]
		got, err := e.push(ctx, part, append(body, "]}"...))
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
		return nil, e.idle(ctx, "push")
	}
	body, n := e.batch(msgs)
	if n < len(msgs) {
		return nil, &engine.Error{Op: "push", Err: engine.ErrTooLarge, Hint: "the batch is larger than the server's largest request"}
	}
	return e.push(ctx, msgs, append(body, `],"atomic":true}`...))
}

// batch writes as many messages as fit into a request, at least one.
func (e *Engine) batch(msgs []engine.Message) (body []byte, n int) {
	size := 64
	for i := range msgs[:min(len(msgs), 8)] {
		size = max(size, len(msgs[i].Body)*4/3+len(msgs[i].Key)+256)
	}
	body = make([]byte, 0, min(size*len(msgs)+64, e.limits.MaxRequest+64))
	body = append(body, `{"messages":[`...)
	const end = 32
	for n < min(len(msgs), e.limits.MaxBatch) {
		before := len(body)
		if n > 0 {
			body = append(body, ',')
		}
		body = appendMessage(body, &msgs[n])
		if n > 0 && len(body)+end > e.limits.MaxRequest {
			return body[:before], n
		}
		n++
	}
	return body, n
}

func (e *Engine) push(ctx context.Context, msgs []engine.Message, body []byte) ([]engine.PushResult, error) {
	c := call{op: "push", method: http.MethodPost, path: "/v1/messages", body: body}
	if len(msgs) == 1 {
		c.ref = engine.Ref{Queue: msgs[0].Queue, Key: msgs[0].Key}
	}
	b, err := e.do(ctx, c)
	if err != nil {
		return nil, err
	}
	defer b.free()
	results := make([]engine.PushResult, 0, len(msgs))
	err = readResults(b.b, func(c *cursor) {
		var r engine.PushResult
		c.object(func(name string) {
			switch name {
			case "outcome":
				o, err := engine.ParseOutcome(c.text())
				c.fail(err)
				r.Outcome = o
			case "id":
				r.ID = c.id()
			case "due":
				r.Due = c.time()
			case "state":
				r.State = c.state()
			case "error":
				if w := c.wrong(); len(results) < len(msgs) {
					m := &msgs[len(results)]
					r.Err = w.err("push", engine.Ref{Queue: m.Queue, Key: m.Key})
				}
			default:
				c.skip()
			}
		})
		results = append(results, r)
	})
	if err == nil && len(results) != len(msgs) {
		err = problem("%d results for %d messages", len(results), len(msgs))
	}
	if err != nil {
		return nil, err
	}
	for i := range results {
		if results[i].Err == nil && results[i].Outcome != engine.Kept {
			e.watch.Hint(msgs[i].Queue)
		}
	}
	return results, nil
}

// readResults reads an answer with one result for each item.
func readResults(data []byte, each func(c *cursor)) error {
	return read(data, func(c *cursor) {
		c.object(func(name string) {
			if name == "results" {
				c.array(func() { each(c) })
			} else {
				c.skip()
			}
		})
	})
}

// idle is what a call about nothing still has to find out.
func (e *Engine) idle(ctx context.Context, op string) error {
	err := e.calls.Enter(ctx, op)
	if err == nil {
		e.calls.Leave()
	}
	return err
}
