package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// forwarding forwards due messages by the routes of the --config file while serve runs.
type forwarding struct {
	p      *Program
	path   string // of the --config file
	router *forward.Router
	cancel context.CancelFunc
	ended  chan error
}

// startForwarding begins to forward. Without a --config file there are never routes.
func (p *Program) startForwarding(ctx context.Context, c *tarry.Client, routes forward.Routes, s *serveFlags, spans *spans, logger *slog.Logger) (*forwarding, error) {
	if p.settings.file.path == "" {
		return &forwarding{}, nil
	}
	cfg := &forward.RouterConfig{DrainTimeout: s.drain, Middleware: spans.handle, Logger: logger}
	if s.drain == 0 {
		cfg.DrainTimeout = -1
	}
	h := &forwarding{p: p, path: p.settings.file.path, router: forward.NewRouter(c, cfg), ended: make(chan error, 1)}
	if err := h.router.Set(routes); err != nil {
		return nil, p.settings.file.wrongRoutes(err)
	}
	if len(routes) > 0 {
		fmt.Fprintf(p.Stdout, "forwarding by %s of %s\n", counted(len(routes), "route"), h.path)
	}
	ctx, h.cancel = context.WithCancel(ctx)
	go func() {
		err := h.router.Run(ctx)
		if ctx.Err() == nil {
			logger.Error("messages are no longer forwarded", "error", err)
		}
		h.ended <- err
	}()
	return h, nil
}

// reload uses the routes now in the file, unless they are wrong.
func (h *forwarding) reload() {
	if h.router == nil {
		return
	}
	file, err := readConfig(h.path)
	var routes forward.Routes
	if err == nil {
		routes, err = file.readRoutes()
	}
	if err == nil {
		if err = h.router.Set(routes); err != nil {
			err = file.wrongRoutes(err)
		}
	}
	if err != nil {
		fmt.Fprintln(h.p.Stderr, oneLine(err.Error()+"; the routes stay as they were"))
		return
	}
	fmt.Fprintf(h.p.Stderr, "tarry: %s was read again: %s\n", h.path, counted(len(routes), "route"))
}

// end stops forwarding, and waits until the routes have drained.
func (h *forwarding) end() error {
	if h.router == nil {
		return nil
	}
	h.cancel()
	return <-h.ended
}

// messagesWere returns the subject of a sentence: "1 message was", "2 messages were".
func messagesWere[N int | int64](n N) string {
	if n == 1 {
		return "1 message was"
	}
	return counted(n, "message") + " were"
}

// counted returns a number of things: "1 message", "2 messages".
func counted[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok && !strings.HasSuffix(stem, "e") { // entries, keys
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
