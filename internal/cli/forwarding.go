package cli

import (
	"context"
	"errors"
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
	path   string // of the --config file; "": none
	router *forward.Router
	runner *intake.Runner
	cancel context.CancelFunc
	ended  chan error
}

// startForwarding begins to forward and to take.
func (p *Program) startForwarding(ctx context.Context, c *tarry.Client, f *flows, s *serveFlags, spans *spans, logger *slog.Logger) (*forwarding, error) {
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
	if h.path == "" {
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

// end stops forwarding and taking, and waits until routes and intakes have drained.
func (h *forwarding) end() error {
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

// intakeSettings is an intake as written in a --config file.
type intakeSettings struct {
	title
	Source     string        `json:"source,omitempty"`
	SourceFile string        `json:"source_file,omitempty"`
	Target     string        `json:"target,omitempty"`
	TargetFile string        `json:"target_file,omitempty"`
	OnConflict string        `json:"on_conflict,omitempty"`
	Remember   *jsonDuration `json:"remember,omitempty"`
	Timeout    *jsonDuration `json:"timeout,omitempty"`
}

// made returns the intake that the settings describe.
func (s intakeSettings) made() (i intake.Intake, err error) {
	i = intake.Intake{Name: s.Name, Queue: s.Queue, OnConflict: s.OnConflict}
	if s.Queue == "" {
		return i, errors.New(`it has no queue (as in "queue": "orders")`)
	}
	if i.Source, err = fileURL("source", s.Source, s.SourceFile); err != nil {
		return i, err
	}
	if s.Target != "" || s.TargetFile != "" {
		if i.Target, err = fileURL("target", s.Target, s.TargetFile); err != nil {
			return i, err
		}
	}
	if i.Remember = s.Remember.value(); s.Remember != nil && i.Remember == 0 {
		i.Remember = -1 // not at all
	}
	i.Options.Timeout, err = timeoutOf(s.Timeout)
	return i, err
}

// flows are the routes and intakes of a --config file.
type flows struct {
	routes  forward.Routes // also those that intakes imply
	intakes intake.Intakes
}

// readFlows reads and checks the routes and intakes of a file.
func (c *configFile) readFlows() (f flows, err error) {
	if f.routes, _, err = read[forward.Routes, routeSettings](c, &routesSection); err != nil {
		return f, err
	}
	if f.intakes, _, err = read[intake.Intakes, intakeSettings](c, &intakesSection); err != nil {
		return f, err
	}
	f.routes = append(f.routes, f.intakes.Routes()...)
	if _, err = f.routes.Complete(); err != nil {
		return f, usagef("an intake with a target makes a route", "%s: routes and intakes: %v", c.path, err)
	}
	return f, nil
}

// String says how many there are.
func (f *flows) String() string {
	text := counted(len(f.routes), "route")
	if len(f.intakes) > 0 {
		text += ", " + counted(len(f.intakes), "intake")
	}
	return text
}

// runSchedules runs the schedules of a store, if its engine has any, until end is called. end
// waits for those that fire.
func runSchedules(c *tarry.Client, logger *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true, Logger: logger}).Run(ctx)
		if err != nil && !errors.Is(err, tarry.ErrUnsupported) {
			logger.Error("schedules no longer fire", "error", err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
