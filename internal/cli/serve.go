package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/tarryprom"
	"github.com/tarryhq/tarry/trend"
	"github.com/tarryhq/tarry/ui"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	store          string
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
	disk           diskFlags
	history        historyFlags
	guard          guardFlags

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

The routes of the --config file forward due messages (tarry route --help). SIGHUP makes
serve read the routes again.

OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of OpenTelemetry say where to export
traces. Without them there are none.

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
	storeFlag(cmd, &s.store, defaultStore, "where messages are stored: disk:DIR, mem: (lost at the end), or the URL of a Redis, PostgreSQL, MySQL or RabbitMQ server, such as redis://127.0.0.1:6379")
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
	s.disk.add(cmd)
	s.history.add(cmd)
	s.guard.add(cmd)
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
	s.disk.fit(s.store, p.Limit)
	store, err := s.disk.on(s.store)
	if err != nil {
		return err
	}
	if store, err = s.history.on(store, p.settings.levels); err != nil {
		return err
	}
	var wishes <-chan os.Signal
	if p.settings.file.path != "" || s.guard.tokens != "" || s.guard.tls.Cert != "" || notified() {
		// From before the file is read until the store is closed, since SIGHUP would otherwise
		// end the process.
		var stop func()
		wishes, stop = p.Reloads()
		defer stop()
	}
	routes, err := p.settings.file.readRoutes()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	guard, err := s.guard.open(p, logger)
	if err != nil {
		return err
	}
	defer guard.close()
	l, err := p.listen(ctx, s.http)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := s.guard.checkExposed(s.http, l.Addr()); err != nil {
		return err
	}
	guard.warn(p, s.http, l.Addr())
	spans, err := p.exportSpans(ctx, logger)
	if err != nil {
		return err
	}
	defer spans.end()
	metrics := tarryprom.New(nil)
	meter := metrics.Meter()
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
	// This answers probes while the store is being opened.
	serving, end := context.WithCancel(ctx)
	defer end()
	opening, served := server.NewOpening(cfg), make(chan error, 1)
	go func() { served <- opening.Serve(serving, l) }()
	notify(logger, "STATUS=opening the store")
	c, err := s.open(ctx, store, &tarry.Config{MaxBody: int(s.maxBody), PushMiddleware: spans.push, Logger: logger, Meter: meter})
	if err != nil {
		end()
		<-served
		return err
	}
	metrics.Watch(c)
	forwarding, err := p.startForwarding(ctx, c, routes, s, spans, logger)
	if err != nil {
		end()
		<-served
		return errors.Join(err, c.Close())
	}
	opening.Opened(s.pages(server.New(c, cfg)))
	var beside sync.WaitGroup
	if s.shop != nil {
		beside.Go(func() { s.shop(serving, l.Addr()) })
	} else {
		p.welcome(l.Addr(), s.store, c.Capabilities(), &s.guard)
	}
	notifyReady(logger)
	beside.Go(func() {
		for {
			select {
			case <-serving.Done():
				return
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
	err = <-served
	end()
	beside.Wait()
	stopping() // if nothing was under way, Serve may end before the AfterFunc has run
	undrained := forwarding.end()
	if ctx.Err() != nil {
		switch {
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
	return s.guard.check(s.http)
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

// names returns the hosts that the server answers for: those of --host, and the one in the
// address it listens on.
func (s *serveFlags) names() []string {
	host, _, _ := net.SplitHostPort(s.http)
	if host == "" {
		return s.hosts
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.IsUnspecified() || ip.Zone() != "") {
		return s.hosts
	}
	return append(slices.Clone(s.hosts), host)
}

func (p *Program) listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, usagef("an address is HOST:PORT, such as 127.0.0.1:8277", "--http %q is not an address", address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failedf(err, "stop what listens there, or choose another with --http, such as --http "+net.JoinHostPort(host, "0"),
			"cannot listen on %s: the port is in use", address)
	case errors.Is(err, syscall.EACCES):
		return nil, failedf(err, "choose a port above 1023", "cannot listen on %s: not allowed", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, usagef("choose an address of this machine, such as 127.0.0.1:8277", "cannot listen on %s: no such address here", address)
	case errors.As(err, new(*net.DNSError)), errors.As(err, new(*net.AddrError)):
		return nil, usagef("an address is HOST:PORT, such as 127.0.0.1:8277", "cannot listen on %s: %v", address, err)
	}
	return nil, failedf(err, "choose another address with --http", "cannot listen on %s: %v", address, err)
}

// welcome says where the server listens, where it stores data, and what to try first.
func (p *Program) welcome(addr net.Addr, store string, caps tarry.Capabilities, guard *guardFlags) {
	url, at, with := "http://"+reachable(addr), "", ""
	if guard.tls.Cert != "" {
		url = "https://" + reachable(addr)
	}
	if url != defaultServer {
		at = " --server " + url
	}
	if guard.tokens != "" {
		with = ", with a token in TARRY_TOKEN"
	}
	where := "engine " + shown(caps.Name)
	if dir, ok := diskDir(store); ok {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		where = dir
	} else if caps.Name == "mem" {
		where = "in memory only; it is lost when this process ends"
	}
	fmt.Fprintf(p.Stdout, `tarry %s listens on %s
dashboard: %s/
data: %s
try%s:
  tarry push hello '"hi"' --in 10s%s
  tarry work hello%s -- cat
`, readBuild().Version, url, url, where, with, at, at)
}

// reachable returns an address that a client on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return addr.String()
}
