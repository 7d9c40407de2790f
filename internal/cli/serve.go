package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/tarryprom"
	"github.com/tarryhq/tarry/trend"
	"github.com/tarryhq/tarry/ui"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	storeFlags
	http           string
	hosts          []string
	maxBody        int64
	maxBuffered    int64
	maxConnections int
	maxViewers     int
	drain          time.Duration
	trends         bool
	readOnly       bool
	secure         bool
	backupDir      string
	guard          guardFlags
	beanstalk      beanstalkFlags
	noHTTP         bool
	user           string // to become after listening; "": stay

	// tarry demo sets these.
	open  func(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error)
	clock func() time.Time                         // of the store; nil: time.Now
	shop  func(ctx context.Context, addr net.Addr) // runs until ctx ends; nil: there is none
}

func (p *Program) serveCommand(s *serveFlags) *cobra.Command {
	s.drain, s.open = 30*time.Second, openStore
	cmd := &cobra.Command{
		Use:        "serve",
		SuggestFor: []string{"server", "start"},
		Short:      "Serve the HTTP API and the dashboard on a store",
		Long: `Serve opens a store and serves the HTTP API, and the dashboard at /, until interrupted.
Then it accepts no new requests, answers those in progress and closes the store. By default
messages are stored in ./tarry-data, and only this machine can connect.

The routes of the --config file forward due messages (tarry route --help), and its intakes
take messages from other systems (tarry intake --help). SIGHUP makes serve read them again.
It also runs the schedules of the store (tarry schedule --help).

OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of OpenTelemetry say where to export
traces. Without them there are none.

With --beanstalk it also serves clients of beanstalkd. SIGUSR1 makes it refuse their new jobs.

If other machines can reach it, clients need a token from the --tokens file (tarry token
--help), unless --insecure is given.

It answers requests for localhost, for loopback addresses and for the address that it
listens on. Add other hosts, such as that of a proxy, with --host.`,
		Example: "  tarry serve\n  tarry serve --store disk:/var/lib/tarry --http :8277 --host tarry.example.com --tokens tokens.json --tls-cert cert.pem --tls-key key.pem\n  tarry serve --config tarry.json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.serve(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	s.storeFlags.add(cmd)
	f.StringVar(&s.http, "http", "127.0.0.1:8277", "address to listen on; port 0 takes a free one")
	f.Lookup("http").Annotations = map[string][]string{flagAliases: {"listen", "addr", "address", "bind", "port"}}
	f.StringSliceVar(&s.hosts, "host", nil, "name that the server answers for, such as tarry.example.com or *.example.com; may be repeated")
	s.maxBody, s.maxBuffered = tarry.DefaultMaxBody, server.DefaultMaxBuffered
	f.Var(sizeFlag(&s.maxBody), "max-body", "largest body of a message, such as 64KiB or 2MiB")
	f.Var(sizeFlag(&s.maxBuffered), "max-buffered", "bytes of requests and answers held in memory at once, such as 512MiB")
	f.IntVar(&s.maxConnections, "max-connections", server.DefaultMaxConnections, "connections at once")
	f.IntVar(&s.maxViewers, "max-viewers", server.DefaultMaxViewers, "who may watch the dashboard and GET /v1/live at once; at most half of the connections")
	f.BoolVar(&s.trends, "trends", true, "keep in memory what happened in the last three days, for the dashboard, tarry top and tarry status")
	f.Var(durationFlag(&s.drain), "drain", "how long requests under way, and what is being forwarded, may take after an interrupt")
	f.BoolVar(&s.readOnly, "ui-read-only", false, "have the dashboard change nothing, whoever looks; other clients may as before")
	f.BoolVar(&s.secure, "ui-secure", false, "have browsers send the dashboard's cookie over TLS alone: for a proxy that ends TLS before this server")
	f.StringVar(&s.backupDir, "backup-dir", "", "directory for the backups that tarry backup asks for, each below it under its name; without it there are none")
	s.guard.add(cmd)
	s.beanstalk.add(cmd)
	return cmd
}

// serve listens before it opens the store. So a port in use is reported at once, and probes
// learn that the store is being opened. All other requests wait until it is open.
func (p *Program) serve(ctx context.Context, s *serveFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	p.outliveOutput()
	p.sayLimit()
	p.Stdout = newLossyWriter(p.Stdout, false)
	store, err := s.storeFlags.url(p.settings.levels, p.Limit)
	if err != nil {
		return err
	}
	var wishes, drains <-chan os.Signal
	if p.settings.file.path != "" || s.guard.tokens != "" || s.guard.tls.Cert != "" || notified() {
		// From before the file is read until the store is closed, since SIGHUP would otherwise
		// end the process.
		var stop func()
		wishes, stop = p.Reloads()
		defer stop()
	}
	if s.beanstalk.address != "" {
		var stop func()
		drains, stop = p.Drains()
		defer stop()
	}
	flows, err := p.settings.file.readFlows()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	guard, err := s.guard.open(p, logger)
	if err != nil {
		return err
	}
	defer guard.close()
	on, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer on.close()
	on.warn(p, s, guard)
	if err := become(s.user); err != nil {
		return err
	}
	spans, err := p.exportSpans(ctx, logger)
	if err != nil {
		return err
	}
	defer spans.end()
	metrics := tarryprom.New(nil)
	var meter *tarry.Meter
	if on.http != nil { // else nobody could read them
		meter = metrics.Meter()
	}
	var trends *trend.Recorder
	if s.trends {
		trends = trend.New(&trend.Config{Now: s.clock})
		meter = tarry.Meters(meter, trends.Meter())
	}
	guard.audit.Lost = metrics.AuditLost
	if guard.cert != nil {
		metrics.WatchCertificate(guard.cert.End)
	}
	cfg := &server.Config{
		Version:         readBuild().Version,
		Hosts:           s.names(),
		MaxBuffered:     s.maxBuffered,
		MaxConnections:  s.maxConnections,
		MaxViewers:      s.maxViewers,
		ShutdownTimeout: max(s.drain, time.Millisecond),
		Guard:           guard.guard,
		Audit:           guard.audit,
		Certificate:     guard.cert,
		Metrics:         metrics.Handler(),
		Answered:        metrics.Answered,
		Trends:          trends,
		BackupDir:       s.backupDir,
		Logger:          logger,
	}
	serving, end := context.WithCancel(ctx)
	served, serving := errgroup.WithContext(serving)
	defer func() {
		end()
		_ = served.Wait()
	}()
	opening := server.NewOpening(cfg)
	if on.http != nil {
		// This answers probes while the store is being opened.
		served.Go(func() error { return opening.Serve(serving, on.http) })
	}
	notify(logger, "STATUS=opening the store")
	c, err := s.open(ctx, store, &tarry.Config{MaxBody: int(s.maxBody), PushMiddleware: spans.push, Logger: logger, Meter: meter})
	if err != nil {
		return err
	}
	metrics.Watch(c)
	front, err := s.beanstalk.open(p, c, on, guard, metrics, cfg)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	forwarding, err := p.startForwarding(ctx, c, &flows, s, spans, logger)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	endSchedules := runSchedules(c, logger)
	cfg.Intakes = forwarding.runner.Status
	metrics.WatchIntakes(forwarding.runner.Status)
	if front != nil {
		served.Go(func() error { return front.Serve(serving, on.beanstalk) })
	}
	api := server.New(c, cfg)
	metrics.WatchSchedules(api.ScheduleProblems)
	opening.Opened(s.pages(api))
	var beside sync.WaitGroup
	if s.shop != nil {
		beside.Go(func() { s.shop(serving, on.http.Addr()) })
	} else {
		p.welcome(on, s, c.Capabilities())
	}
	notifyReady(logger)
	beside.Go(func() {
		for {
			select {
			case <-serving.Done():
				return
			case <-drains:
				front.Drain()
				fmt.Fprintln(p.Stderr, "tarry: draining: clients of beanstalkd can put no more jobs until the next start")
			case <-wishes:
				notifyReloading(logger)
				guard.refresh()
				forwarding.reload()
				notifyReady(logger)
			}
		}
	})
	stopping := sync.OnceFunc(func() {
		if ctx.Err() != nil {
			notify(logger, daemon.SdNotifyStopping, "STATUS=answering the requests under way")
		}
	})
	defer context.AfterFunc(ctx, stopping)()
	err = served.Wait()
	end()
	beside.Wait()
	stopping() // if nothing was under way, Serve may end before the AfterFunc has run
	endSchedules()
	undrained := forwarding.end()
	if ctx.Err() != nil {
		switch {
		case err != nil && on.http == nil: // beanstalkd, which cuts all connections, does not fail either
			fmt.Fprintln(p.Stderr, "tarry:", err)
			err = nil
		case err != nil:
			err = failedf(err, "give them longer with --drain", "the server stopped, but not all requests under way were answered in time: %v", err)
		case undrained != nil:
			err = failedf(undrained, "it is forwarded again; give it longer with --drain", "the server stopped, but not all that was being forwarded was finished in time: %v", undrained)
		}
	} else if err != nil {
		err = failedf(err, "start it again", "the server can take no more connections: %v", err)
	}
	err = closing(c, err)
	if ctx.Err() != nil {
		fmt.Fprintln(p.Stderr, "tarry: stopped serving, and closed the store")
	}
	return err
}

func (s *serveFlags) check() error {
	switch {
	case s.maxBody < 1:
		return usagef("it is a size such as 1MiB", "--max-body %d is less than 1", s.maxBody)
	case s.maxBuffered < 1:
		return usagef("it is a size such as 256MiB", "--max-buffered %d is less than 1", s.maxBuffered)
	case s.maxConnections < 1:
		return usagef("it is a number of connections, such as 4096", "--max-connections %d is less than 1", s.maxConnections)
	case s.maxViewers < 1:
		return usagef("it is a number of viewers, such as 1000", "--max-viewers %d is less than 1", s.maxViewers)
	}
	for _, h := range s.hosts {
		if err := server.CheckHost(h); err != nil {
			return usagef("give the name alone, without http:// and port", "--host: %v", err)
		}
	}
	return cmp.Or(s.guard.check(), s.beanstalk.check(s.store, s.maxBody, &s.guard))
}

// pages serves the dashboard, and the API beside it.
func (s *serveFlags) pages(api http.Handler) http.Handler {
	dashboard := ui.New(api, &ui.Config{ReadOnly: s.readOnly, Secure: s.secure})
	if !s.readOnly {
		return dashboard
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Browsers say in these headers where a request that changes something comes from.
		if r.Header["Origin"] == nil && r.Header["Sec-Fetch-Site"] == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
			api.ServeHTTP(w, r)
			return
		}
		dashboard.ServeHTTP(w, r)
	})
}

// names returns the hosts that the server answers for besides the addresses that it is reached
// at: those of --host, and a name in the address it listens on.
func (s *serveFlags) names() []string {
	host, _, _ := net.SplitHostPort(s.http)
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return s.hosts
	}
	return append(slices.Clone(s.hosts), host)
}
