package httpengine

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Pause stops leasing and claiming from a queue for d, or until Resume when d is 0.
func (e *Engine) Pause(ctx context.Context, queue string, d time.Duration) error {
	_, err := e.operate(ctx, "pause", queue, wire.Pausing.Append(nil, &d))
	return err
}

// Resume ends a pause.
func (e *Engine) Resume(ctx context.Context, queue string) error {
	_, err := e.operate(ctx, "resume", queue, []byte("{}"))
	return err
}

// Purge removes the messages that were scheduled or ready when it began. If ctx ends or the
// connection breaks before the answer, the count is unknown and 0 is returned.
func (e *Engine) Purge(ctx context.Context, queue string, also engine.PurgeAlso) (int64, error) {
	done, err := e.operate(ctx, "purge", queue, wire.Purging.Append(nil, &also))
	if p, ok := err.(*partial); ok {
		return p.count, p.error
	}
	return done.Redriven, err
}

// Redrive makes dead messages ready.
func (e *Engine) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	if len(ids) == 0 {
		return e.operate(ctx, "redrive", queue, wire.Redriving.Append(nil, &wire.Sweep{Limit: max(limit, 0)}))
	}
	var all engine.Redriven
	for part := range slices.Chunk(ids, e.limits.MaxBatch) {
		done, err := e.operate(ctx, "redrive", queue, wire.Redriving.Append(nil, &wire.Sweep{IDs: part}))
		if err != nil {
			return all, err
		}
		all.Redriven += done.Redriven
		all.Skipped += done.Skipped
	}
	return all, nil
}

// operate makes a call about a queue, and hints at the queue: something may be due sooner.
func (e *Engine) operate(ctx context.Context, op, queue string, body []byte) (engine.Redriven, error) {
	done, err := ask(ctx, e, call{op: op, ref: engine.Ref{Queue: queue}, method: http.MethodPost,
		path: wire.QueuePath(queue) + "/" + op, body: body, free: op == "purge" || op == "redrive"}, wire.Redriven)
	if err == nil {
		e.watch.Hint(queue)
	}
	return engine.Redriven{Redriven: done.Count, Skipped: done.Skipped}, err
}
