package httpengine

import (
	"context"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, queue string) (s engine.Settings, revision string, err error) {
	got, err := ask(ctx, e, call{op: "settings", ref: engine.Ref{Queue: queue}, method: http.MethodGet, path: settingsPath(queue)}, readSettings)
	return got.Settings, got.revision, err
}

// Configure stores the settings of a queue.
func (e *Engine) Configure(ctx context.Context, queue string, s engine.Settings, revision string) (string, error) {
	got, err := ask(ctx, e, call{op: "configure", ref: engine.Ref{Queue: queue}, method: http.MethodPut, path: settingsPath(queue),
		body: wire.AppendSettings(nil, &s, revision)}, readSettings)
	if err == nil {
		e.watch.Hint(queue) // limits may have been lifted
	}
	return got.revision, err
}

func settingsPath(queue string) string { return wire.QueuePath(queue) + "/settings" }

type settings struct {
	engine.Settings
	revision string
}

func readSettings(r *wire.Reader) (s settings) {
	s.Settings, s.revision = r.Settings()
	return s
}
