package httpengine

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// List returns one page of a queue's messages in one state.
func (e *Engine) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	return ask(ctx, e, call{op: "list", ref: engine.Ref{Queue: q.Queue}, method: http.MethodGet,
		path: wire.QueuePath(q.Queue) + "/messages", query: wire.ListQuery.FormatQuery(&wire.List{ListQuery: q}), brings: q.Limit}, wire.MessagePage)
}

// Queue returns what one queue holds.
func (e *Engine) Queue(ctx context.Context, queue string) (engine.QueueInfo, error) {
	return ask(ctx, e, call{op: "count", ref: engine.Ref{Queue: queue}, method: http.MethodGet, path: wire.QueuePath(queue)}, wire.QueueHolds)
}

// Queues returns the queues that hold messages, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	page, err := ask(ctx, e, call{op: "count", method: http.MethodGet, path: "/v1/queues", query: wire.PageQuery.FormatQuery(&wire.PageAsked{After: after, Limit: limit})}, wire.QueuePage)
	return page.Queues, page.Next, err
}

// Forecast counts messages by due time.
func (e *Engine) Forecast(ctx context.Context, queue string, step, span time.Duration) (engine.Forecast, error) {
	f, err := ask(ctx, e, call{op: "forecast", ref: engine.Ref{Queue: queue}, method: http.MethodGet,
		path: wire.QueuePath(queue) + "/forecast", query: wire.ForecastQuery.FormatQuery(&wire.ForecastAsked{Step: step, Span: span})}, wire.ForecastAnswer)
	return f.Forecast, err
}

// Fetch returns the JSON answer to a GET of the server's API for which engines have no call,
// such as the history. path is percent-encoded and begins with /v1/. It fails with
// ErrUnsupported, or on older servers with ErrNotFound, if the server has no such call.
func (e *Engine) Fetch(ctx context.Context, path, query string) ([]byte, error) {
	b, err := e.do(ctx, call{op: "read", method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	defer b.free()
	return slices.Clone(b.b), nil
}
