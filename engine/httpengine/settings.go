package httpengine

import (
	"context"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, queue string) (s engine.Settings, revision string, err error) {
	got, err := ask(ctx, e, call{op: "settings", ref: engine.Ref{Queue: queue}, method: http.MethodGet, path: settingsPath(queue)}, wire.Configured)
	return got.Settings, got.Revision, err
}

// Configure stores the settings of a queue.
func (e *Engine) Configure(ctx context.Context, queue string, s engine.Settings, revision string) (string, error) {
	got, err := ask(ctx, e, call{op: "configure", ref: engine.Ref{Queue: queue}, method: http.MethodPut, path: settingsPath(queue),
		body: wire.Configuring.Append(nil, &wire.Settings{Settings: s, Revision: revision})}, wire.Configured)
	if err == nil {
		e.watch.Hint(queue) // limits may have been lifted
	}
	return got.Revision, err
}

func settingsPath(queue string) string { return wire.QueuePath(queue) + "/settings" }
