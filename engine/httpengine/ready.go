package httpengine

import (
	"context"
	"net/http"
	"net/url"
)

// Ready implements engine.Readier: it asks the server.
func (e *Engine) Ready(ctx context.Context) error {
	b, err := e.do(ctx, call{op: "ready", method: http.MethodGet, path: "/readyz"})
	if err == nil {
		b.free()
	}
	return err
}

// Ready asks only whether the server at u is ready, as probes do. It needs no token.
func Ready(ctx context.Context, u *url.URL, opts *Options) error {
	e, err := prepare(u, opts)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Ready(ctx)
}
