package httpengine

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// escape percent-encodes a segment of a path, also . and .., which would vanish.
func escape(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func queuePath(queue string) string { return "/v1/queues/" + escape(queue) }

func refPath(ref engine.Ref) string {
	if ref.ID != 0 {
		return queuePath(ref.Queue) + "/messages/" + ref.ID.String()
	}
	return queuePath(ref.Queue) + "/keys/" + escape(ref.Key)
}

// Get looks a message up.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return e.info(ctx, call{op: "get", ref: ref, method: http.MethodGet, path: refPath(ref)})
}

// Reschedule moves a due time. The Info returned lacks the body.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	body := appendWhen([]byte("{"), due)
	if len(body) == 1 {
		body = append(body, `,"delay":"0s"`...)
	}
	body = append(slices.Delete(body, 1, 2), '}') // the comma
	i, err := e.info(ctx, call{op: "reschedule", ref: ref, method: http.MethodPatch, path: refPath(ref), body: body})
	if err == nil {
		e.watch.Hint(ref.Queue)
	}
	return i, err
}

func (e *Engine) info(ctx context.Context, c call) (engine.Info, error) {
	b, err := e.do(ctx, c)
	if err != nil {
		return engine.Info{}, err
	}
	defer b.free()
	var l engine.Lease
	err = read(b.b, func(c *cursor) { l = c.info() })
	return l.Info, err
}

// Cancel cancels in requests of as many as the server takes.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if len(refs) == 0 {
		return nil, e.idle(ctx, "cancel")
	}
	out := make([]error, 0, len(refs))
	for part := range slices.Chunk(refs, e.limits.MaxBatch) {
		got, err := e.cancelPart(ctx, part)
		if err != nil {
			if len(part) == len(refs) {
				return nil, err
			}
			got = slices.Repeat([]error{err}, len(part))
		}
		out = append(out, got...)
	}
	return out, nil
}

func (e *Engine) cancelPart(ctx context.Context, refs []engine.Ref) ([]error, error) {
	body := make([]byte, 0, 64+96*len(refs))
	body = append(body, `{"refs":[`...)
	for i, r := range refs {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"queue":`...)
		body = appendString(body, r.Queue)
		if r.ID != 0 {
			body = append(body, `,"id":"`...)
			body = append(body, r.ID.String()...)
			body = append(body, `"}`...)
		} else {
			body = append(body, `,"key":`...)
			body = append(appendString(body, r.Key), '}')
		}
	}
	b, err := e.do(ctx, call{op: "cancel", method: http.MethodPost, path: "/v1/cancel", body: append(body, "]}"...)})
	if err != nil {
		return nil, err
	}
	defer b.free()
	out := make([]error, 0, len(refs))
	err = readResults(b.b, func(c *cursor) {
		var itemErr error
		c.object(func(name string) {
			if name != "error" {
				c.skip()
			} else if w := c.wrong(); len(out) < len(refs) {
				itemErr = w.err("cancel", refs[len(out)])
			}
		})
		out = append(out, itemErr)
	})
	if err == nil && len(out) != len(refs) {
		err = problem("%d results for %d refs", len(out), len(refs))
	}
	return out, err
}
