package httpengine

import (
	"context"
	"net/http"

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
		path: wire.RefPath(ref), query: wire.RefQuery.FormatQuery(&ref.IfState), body: wire.Rescheduling.Append(nil, &due)})
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
	return inParts(ctx, e, "cancel", refs, func(rest []engine.Ref) (int, []error, error) {
		part := rest[:min(len(rest), e.limits.MaxBatch)]
		body := wire.Cancelling.Append(make([]byte, 0, 64+96*len(part)), &wire.Items[engine.Ref]{All: part})
		got, err := askEach(ctx, e, call{op: "cancel", method: http.MethodPost, path: "/v1/cancel", body: body}, len(part), wire.CancelResult,
			func(i int, c *wire.Cancelled) error { return failed(c.Err, "cancel", part[i]) })
		return len(part), got, err
	}, func(err error) error { return err })
}
