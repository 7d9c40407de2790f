package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/intake"
)

// forwarding forwards due messages by the routes of the --config file, and takes messages by
// its intakes, while serve runs.
type forwarding struct {
	p      *Program
	path   string // of the --config file
	router *forward.Router
	runner *intake.Runner
	cancel context.CancelFunc
	ended  chan error
}

// startForwarding begins to forward and to take. Without a --config file there is never
// anything to do.
func (p *Program) startForwarding(ctx context.Context, c *tarry.Client, f *flows, s *serveFlags, spans *spans, logger *slog.Logger) (*forwarding, error) {
	if p.settings.file.path == "" {
		return &forwarding{}, nil
	}
	drain := s.drain
	if drain == 0 {
		drain = -1
	}
	h := &forwarding{
		p: p, path: p.settings.file.path, ended: make(chan error, 1),
		router: forward.NewRouter(c, &forward.RouterConfig{DrainTimeout: drain, Middleware: spans.handle, Logger: logger}),
		runner: intake.NewRunner(c, &intake.RunnerConfig{DrainTimeout: drain, Logger: logger}),
	}
	if err := h.set(f); err != nil {
		return nil, p.settings.file.refused(err)
	}
	if len(f.routes) > 0 {
		fmt.Fprintf(p.Stdout, "forwarding by %s of %s\n", counted(len(f.routes), "route"), h.path)
	}
	if len(f.intakes) > 0 {
		fmt.Fprintf(p.Stdout, "taking messages by %s of %s\n", counted(len(f.intakes), "intake"), h.path)
	}
	ctx, h.cancel = context.WithCancel(ctx)
	go func() {
		var both errgroup.Group
		both.Go(func() error {
			err := h.router.Run(ctx)
			if ctx.Err() == nil {
				logger.Error("messages are no longer forwarded", "error", err)
			}
			return err
		})
		both.Go(func() error { return h.runner.Run(ctx) })
		h.ended <- both.Wait()
	}()
	return h, nil
}

// set uses these routes and intakes.
func (h *forwarding) set(f *flows) error {
	if err := h.runner.Set(f.intakes); err != nil {
		return err
	}
	return h.router.Set(f.routes)
}

// reload uses the routes and intakes now in the file, unless they are wrong.
func (h *forwarding) reload() {
	if h.router == nil {
		return
	}
	file, err := readConfig(h.path)
	var f flows
	if err == nil {
		f, err = file.readFlows()
	}
	if err == nil {
		if err = h.set(&f); err != nil {
			err = file.refused(err)
		}
	}
	if err != nil {
		fmt.Fprintln(h.p.Stderr, oneLine(err.Error()+"; the routes and intakes stay as they were"))
		return
	}
	fmt.Fprintf(h.p.Stderr, "tarry: %s was read again: %s\n", h.path, &f)
}

// intakes returns what the intakes do.
func (h *forwarding) intakes() []intake.Status {
	if h.runner == nil {
		return nil
	}
	return h.runner.Status()
}

// end stops forwarding and taking, and waits until routes and intakes have drained.
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
