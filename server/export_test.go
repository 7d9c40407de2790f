package server

import (
	"context"
	"net"
	"net/http"
)

// Watched is a Server of which a handler sees all that it takes and answers.
type Watched struct {
	*Server
	Handler http.Handler
}

// ServeHTTP answers one request.
func (w *Watched) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.Handler.ServeHTTP(rw, r) }

// Serve is Server.Serve.
func (w *Watched) Serve(ctx context.Context, ln net.Listener) error {
	return serve(ctx, ln, w, &w.cfg)
}

// Waits is how many lease requests wait.
func (w *Watched) Waits() int64 { return w.waits.Load() }
