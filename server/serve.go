package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// stoppingKey finds in a request's context the one that ends when the server shuts
// down. The request's own does not end then: what was begun is finished.
type stoppingKey struct{}

func stopping(ctx context.Context) context.Context {
	c, _ := ctx.Value(stoppingKey{}).(context.Context)
	return c
}

// Serve answers requests on a listener until ctx ends. Then it stops accepting, ends
// long polls at once with what they have, and waits for the other requests under
// way, for as long as Config.ShutdownTimeout says; those that take longer lose their
// connection. It returns nil after an end in good order, and closes the listener in
// any case.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return serve(ctx, ln, s, &s.cfg)
}

func serve(ctx context.Context, ln net.Listener, handler http.Handler, cfg *Config) error {
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx)
	conns := newConnections(ln, cfg)
	hs := &http.Server{
		Handler:           timed(handler, cfg),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         conns.changed,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeader,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(conns) }()
	// What a request still has to do, such as to release leases, it does before the
	// caller may close the client.
	defer conns.wait(lastGrace)
	select {
	case err := <-served:
		return errors.Join(err, hs.Close())
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
	defer cancel()
	err := hs.Shutdown(end)
	if err != nil {
		err = errors.Join(errors.New("requests were still under way when the server's time to shut down was over"), hs.Close())
	}
	<-served
	return err
}

// timed bounds how long a client may take to send the body of a request also where nobody
// reads it but net/http, which does so before it sends the answer: that is not for the
// API alone to do, as others may stand before it. Who reads a body moves the bound.
func timed(handler http.Handler, cfg *Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cfg.ReadTimeout))
		}
		handler.ServeHTTP(w, r)
	})
}

// lastGrace is how long Serve waits for requests whose connection it has cut.
const lastGrace = 5 * time.Second
