package httpengine

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
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

// Troubles asks the server for problems that it has while it is ready, such as with its audit
// log or its tokens. Without a valid token the answer is empty.
func (e *Engine) Troubles(ctx context.Context) (all []engine.Trouble, err error) {
	b, err := e.do(ctx, call{op: "ready", method: http.MethodGet, path: "/readyz"})
	if err != nil {
		return nil, err
	}
	defer b.free()
	told, err := wire.ReadReady(b.b)
	for _, t := range told {
		all = append(all, engine.Trouble(t))
	}
	return all, err
}
