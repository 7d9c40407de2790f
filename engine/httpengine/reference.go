package httpengine

import (
	"context"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Get looks a message up.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return e.info(ctx, call{op: "get", ref: ref, method: http.MethodGet, path: wire.RefPath(ref)})
}

// Reschedule moves a due time. The returned Info lacks the body.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	i, err := e.info(ctx, call{op: "reschedule", ref: ref, method: http.MethodPatch,
		path: wire.RefPath(ref), query: wire.RefQuery(ref), body: wire.Rescheduling.Append(nil, &due)})
	if err == nil {
		e.watch.Hint(ref.Queue)
	}
	return i, err
}

func (e *Engine) info(ctx context.Context, c call) (engine.Info, error) {
	c.brings = 1
	l, err := ask(ctx, e, c, wire.Info)
	return l.Info, err
}

// Cancel makes as few requests as the server's limits allow.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if len(refs) == 0 {
		return nil, e.emptyCall(ctx, "cancel")
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
	if err := e.calls.Enter(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	body := wire.Cancelling.Append(make([]byte, 0, 64+96*len(refs)), &wire.Items[engine.Ref]{All: refs})
	return askEach(ctx, e, call{op: "cancel", method: http.MethodPost, path: "/v1/cancel", body: body}, len(refs), wire.CancelResult,
		func(i int, c *wire.Cancelled) error { return failed(c.Err, "cancel", refs[i]) })
}
