package server

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/wire"
)

type stoppingKey struct{}

// stopping returns a context that ends when the server of a request shuts down. The request's
// own context does not end then, so that work begun is finished.
func stopping(ctx context.Context) context.Context {
	if c, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return c
	}
	return context.Background() // another server has accepted it
}

// Serve answers requests on a listener until ctx ends. Then it stops accepting, closes
// connections without a request, and ends long polls at once with what they have. It waits up
// to Config.ShutdownTimeout for the other requests, then cuts their connections. It returns
// nil if none was cut. It always closes the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	return serve(ctx, ln, s, &s.cfg)
}

func serve(ctx context.Context, ln net.Listener, handler http.Handler, cfg *Config) error {
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx)
	conns := newConnections(ln, cfg)
	hs := &http.Server{
		Handler:     bounded(handler, cfg),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: func(ctx context.Context, nc net.Conn) context.Context {
			c := accepted(nc)
			c.unwatched = calls.Unwatched(ctx)
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState:         conns.changed,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(&errorLog{cfg.Logger, notify.NewLines(10, 10*time.Second)}, "", 0),
		TLSConfig:         cfg.TLS,
		Protocols:         new(http.Protocols),
	}
	hs.Protocols.SetHTTP1(true)
	hs.RegisterOnShutdown(conns.stop)
	served := make(chan error, 1)
	go func() {
		if cfg.TLS != nil {
			served <- hs.ServeTLS(conns, "", "")
		} else {
			served <- hs.Serve(conns)
		}
	}()
	// A cut request may still have leases to release before the caller closes the client.
	defer duration.Returns(conns.done.Wait, lastGrace)
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

// bounded refuses requests on a surplus connection and requests with too many headers. It also
// bounds the time for a body that no handler reads, which net/http reads before it sends the
// answer. A handler that reads a body moves that bound.
func bounded(handler http.Handler, cfg *Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, refused := connOf(r.Context()), (*wire.Error)(nil)
		switch {
		case c.surplus:
			refused = errCrowded
		case fields(r.Header) > maxFields:
			refused = errManyFields
		}
		if r.Body != http.NoBody {
			_ = c.SetReadDeadline(time.Now().Add(cfg.ReadTimeout))
		}
		if refused == nil {
			handler.ServeHTTP(w, r)
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(min(cfg.ReadTimeout, refuseTimeout)))
		r.Header = nil // frees what may be much memory
		w.Header().Set("Connection", "close")
		failAlone(w, refused)
	})
}

const (
	// lastGrace is how long Serve waits for requests after it has cut their connections.
	lastGrace = 5 * time.Second
	// refuseTimeout bounds the reading of a body that bounded refuses.
	refuseTimeout = 2 * time.Second
)

// maxFields bounds the headers of a request, since each costs far more than its bytes.
const maxFields = 100

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

var (
	errCrowded = refusal(http.StatusServiceUnavailable, "unavailable", "the server has as many connections as it may",
		"try again, with fewer connections; tarry serve --max-connections allows more")
	errManyFields = refusal(http.StatusRequestHeaderFieldsTooLarge, "too_large", "the request has more than "+strconv.Itoa(maxFields)+" headers", "")
)

// errorLog bounds the log lines of net/http, such as failed handshakes, since any client can
// cause as many as it likes.
type errorLog struct {
	log   *slog.Logger
	lines *notify.Lines
}

func (l *errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasSuffix(text, ": EOF") { // a probe that only connects
		return len(line), nil
	}
	if left, ok := l.lines.Next(); ok {
		l.log.Warn(text, "not_told", left)
	}
	return len(line), nil
}
