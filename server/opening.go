package server

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/tarryhq/tarry/internal/wire"
)

// Opening answers in place of a Server while its store is being opened. That may take long: a
// schema is migrated, or a log is read. GET /healthz answers, GET /readyz says that the store
// is being opened, and all other requests wait. One connection in eight is kept free for
// probes; any more requests get 503. It is an http.Handler, and may be used by many
// goroutines.
type Opening struct {
	cfg    Config
	server atomic.Pointer[http.Handler]
	opened chan struct{}
	waits  atomic.Int64 // requests that wait
}

// NewOpening returns an Opening for a server that will be made with the same Config; cfg may
// be nil.
func NewOpening(cfg *Config) *Opening {
	return &Opening{cfg: cfg.withDefaults(0), opened: make(chan struct{})}
}

// Opened lets h, a Server or a handler around one, answer the waiting requests and all later
// ones. It must be called at most once.
func (o *Opening) Opened(h http.Handler) {
	o.server.Store(&h)
	close(o.opened)
}

// ServeHTTP answers one request.
func (o *Opening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := o.server.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
	case r.URL.Path == "/healthz":
		answerAlone(w, http.StatusOK, appendHealthy(nil))
		return
	case r.URL.Path == "/readyz":
		failAlone(w, refusal(http.StatusServiceUnavailable, "unavailable", "the store is being opened",
			"wait; if it takes long, the server's log and what is behind the store tell more"))
		return
	}
	defer o.waits.Add(-1)
	if o.waits.Add(1) > int64(max(1, o.cfg.MaxConnections-max(1, o.cfg.MaxConnections/8))) {
		failAlone(w, refusal(http.StatusServiceUnavailable, "unavailable", "the store is being opened, and too many requests wait for it", "try again later"))
		return
	}
	select {
	case <-o.opened:
	case <-stopping(r.Context()).Done():
	case <-r.Context().Done():
		return
	}
	if h := o.server.Load(); h != nil {
		(*h).ServeHTTP(w, r)
	} else {
		failAlone(w, errStopping())
	}
}

// Serve is like Server.Serve, but may begin before there is a store.
func (o *Opening) Serve(ctx context.Context, ln net.Listener) error {
	return serve(ctx, ln, o, &o.cfg)
}

// failAlone answers with an error without a Server.
func failAlone(w http.ResponseWriter, e *wire.Error) {
	if mayRetry(e.Status) {
		w.Header().Set("Retry-After", "1")
	}
	answerAlone(w, e.Status, wire.AppendError(nil, e))
}

func answerAlone(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = jsonType, noStore, nosniff
	w.WriteHeader(status)
	_, _ = w.Write(body) // on an error the client is gone
}
