package httpengine

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Pause stops leasing and claiming of a queue for d, for good when d is 0.
func (e *Engine) Pause(ctx context.Context, queue string, d time.Duration) error {
	body := []byte("{}")
	if d > 0 {
		body = append(appendDuration([]byte(`{"for":`), d), '}')
	}
	_, err := e.operate(ctx, "pause", queue, body)
	return err
}

// Resume ends a pause.
func (e *Engine) Resume(ctx context.Context, queue string) error {
	_, err := e.operate(ctx, "resume", queue, []byte("{}"))
	if err == nil {
		e.watch.Hint(queue)
	}
	return err
}

// Purge removes what was scheduled or ready when it began. When ctx ends, or the
// connection breaks, before the server has answered, the count is not known and 0.
func (e *Engine) Purge(ctx context.Context, queue string, dead bool) (int64, error) {
	done, err := e.operate(ctx, "purge", queue, []byte(`{"dead":`+strconv.FormatBool(dead)+`}`))
	if p, ok := err.(*partial); ok {
		return p.count, p.error
	}
	return done.count, err
}

// Redrive makes dead messages ready.
func (e *Engine) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	var all engine.Redriven
	if len(ids) == 0 {
		done, err := e.operate(ctx, "redrive", queue, []byte(`{"limit":`+strconv.Itoa(max(limit, 0))+`}`))
		all = engine.Redriven{Redriven: done.count, Skipped: done.skipped}
		if err == nil {
			e.watch.Hint(queue)
		}
		return all, err
	}
	for part := range slices.Chunk(ids, e.limits.MaxBatch) {
		body := []byte(`{"ids":[`)
		for i, id := range part {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, `"`+id.String()+`"`...)
		}
		done, err := e.operate(ctx, "redrive", queue, append(body, "]}"...))
		if err != nil {
			return all, err
		}
		all.Redriven += done.count
		all.Skipped += done.skipped
	}
	e.watch.Hint(queue)
	return all, nil
}

type operated struct{ count, skipped int64 }

func (e *Engine) operate(ctx context.Context, op, queue string, body []byte) (done operated, err error) {
	b, err := e.do(ctx, call{op: op, ref: engine.Ref{Queue: queue}, method: http.MethodPost,
		path: queuePath(queue) + "/" + op, body: body, free: op == "purge" || op == "redrive"})
	if err != nil {
		return done, err
	}
	defer b.free()
	err = read(b.b, func(c *cursor) {
		c.object(func(name string) {
			switch name {
			case "count":
				done.count = c.number()
			case "skipped":
				done.skipped = c.number()
			default:
				c.skip()
			}
		})
	})
	return done, err
}
