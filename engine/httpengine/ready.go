package httpengine

import (
	"context"
	"net/http"
)

// Ready implements engine.Readier: it asks the server.
func (e *Engine) Ready(ctx context.Context) error {
	b, err := e.do(ctx, call{op: "ready", method: http.MethodGet, path: "/readyz"})
	if err == nil {
		b.free()
	}
	return err
}
