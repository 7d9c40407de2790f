package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/beanstalk"
	"github.com/tarryhq/tarry/tarryprom"
)

func (p *Program) beanstalkdCommand() *cobra.Command {
	var (
		s                 serveFlags
		listen, port, dir string
		version           bool
	)
	cmd := &cobra.Command{
		Use:   "beanstalkd",
		Short: "Serve clients of beanstalkd, with its flags",
		Long: `Beanstalkd takes the place of beanstalkd: it serves its clients and takes its flags. It
serves no HTTP and no dashboard; tarry serve --beanstalk does. A link to tarry that is named
beanstalkd is this command. SIGUSR1 drains.

Without -l only this machine can connect. An address that others can reach needs --tokens
or --insecure.`,
		Example: "  tarry beanstalkd -l 127.0.0.1 -p 11300 -b /var/lib/tarry\n  tarry beanstalkd -l unix:/run/tarry.sock",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				fmt.Fprintf(p.Stdout, "beanstalkd %s, by tarry %s\n", beanstalk.Version, readBuild().Version)
				return nil
			}
			if cmd.Flags().Changed("binlog-size") {
				fmt.Fprintln(p.Stderr, "tarry: -s is ignored: there are no binlog files")
			}
			var err error
			if s.store, err = jobsIn(dir); err != nil {
				return err
			}
			s.noHTTP, s.trends, s.drain = true, false, time.Second
			s.maxBody = max(s.maxBody, s.beanstalk.maxJob)
			s.beanstalk.at(listen, port)
			return p.serve(cmd.Context(), &s)
		},
	}
	serve, f := p.serveCommand(&s).Flags(), cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&listen, "listen", "l", "127.0.0.1", "address to listen on, or unix:PATH")
	f.StringVarP(&port, "port", "p", "11300", "port to listen on")
	f.StringVarP(&dir, "binlog", "b", "", "directory for the jobs; without it they are in memory only")
	f.Int64P("fsync", "f", 0, "ignored: every answer waits for the disk")
	f.BoolP("no-fsync", "F", false, "ignored, as -f is")
	f.VarP(sizeFlag(&s.beanstalk.maxJob), "max-job", "z", "largest job that may be put")
	f.Int64P("binlog-size", "s", 0, "ignored: there are no binlog files")
	f.StringVarP(&s.user, "user", "u", "", "become this user and its group")
	f.BoolVarP(&version, "version", "v", false, "print the version")
	f.BoolP("verbose", "V", false, "ignored")
	for _, name := range []string{"tokens", "beanstalk-as", "insecure", "audit-log", "tls-cert", "tls-key", "tls-client-ca"} {
		f.AddFlag(serve.Lookup(name))
	}
	return cmd
}

// at sets the address from the flags -l and -p. A socket that systemd passes goes first.
func (b *beanstalkFlags) at(listen, port string) {
	b.flag, b.address, b.inherits = "-p", net.JoinHostPort(listen, port), true
	if strings.HasPrefix(listen, "unix:") {
		b.flag, b.address = "-l", listen
	}
}

// jobsIn returns the URL of the store that keeps jobs in a directory; "": in memory.
func jobsIn(dir string) (string, error) {
	if dir == "" {
		return "mem:", nil
	}
	files, _ := os.ReadDir(dir) // if it cannot be read, opening the store reports it
	if slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "binlog.") }) {
		return "", usagef("give another directory, and run beanstalkd until its jobs are done", "%s holds jobs of beanstalkd, whose files tarry does not read", dir)
	}
	// Nobody could look at the history.
	return (&url.URL{Scheme: "disk", Opaque: url.PathEscape(dir), RawQuery: "history=0s"}).String(), nil
}

// beanstalkFlags say where and how the server speaks beanstalkd's protocol.
type beanstalkFlags struct {
	address  string // HOST:PORT or unix:PATH; "": it does not
	flag     string // that gives the address
	inherits bool   // a socket that systemd listens on goes before the address
	maxJob   int64
	as       string
}

func (b *beanstalkFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	b.flag, b.maxJob = "--beanstalk", beanstalk.DefaultMaxJob
	f.StringVar(&b.address, "beanstalk", "", "address for clients of beanstalkd, such as 127.0.0.1:11300 or unix:/run/tarry.sock; without it there are none")
	f.Var(sizeFlag(&b.maxJob), "beanstalk-max-job", "largest job that clients of beanstalkd may put")
	f.StringVar(&b.as, "beanstalk-as", "", "name of the token whose rights clients of beanstalkd have unless they authenticate")
}

// mostJob is the largest limit that beanstalkd takes.
const mostJob = 1 << 30

func (b *beanstalkFlags) check(store string, maxBody int64, g *guardFlags) error {
	switch {
	case b.address == "" && b.as != "":
		return usagef("give an address with "+b.flag, "--beanstalk-as is given, and clients of beanstalkd have no address")
	case b.address == "":
		return nil
	case b.maxJob < 1 || b.maxJob > mostJob:
		return usagef("give a size such as 64KiB", "the largest job may have 1 to %d bytes, not %d", mostJob, b.maxJob)
	case b.maxJob > maxBody:
		return usagef("give a larger --max-body too", "--beanstalk-max-job %d is more than --max-body", b.maxJob)
	case b.as != "" && g.tokens == "":
		return usagef("give their file with --tokens", "--beanstalk-as names a token, and there are no tokens")
	}
	u, err := url.Parse(store)
	switch {
	case err != nil: // opening the store reports the error
	case isServer(u):
		return usagef("give "+b.flag+" to that server", "clients of beanstalkd need the server that has the store, and %s is another server", bare(store))
	case strings.HasPrefix(u.Scheme, "amqp"):
		return usagef("use a disk store, or a Redis, PostgreSQL or MySQL server", "RabbitMQ has no commands for clients of beanstalkd to find, list or cancel a message")
	}
	return nil
}

// listen listens on the address, unless systemd passes a socket; nil: there is no address.
func (b *beanstalkFlags) listen(ctx context.Context, g *guardFlags) (l net.Listener, err error) {
	if b.address == "" {
		return nil, nil
	}
	if b.inherits {
		l, err = b.inherit()
	}
	if l == nil && err == nil {
		if path, ok := strings.CutPrefix(b.address, "unix:"); ok {
			l, err = listenUnix(ctx, b.flag, path)
		} else {
			l, err = listenTCP(ctx, b.flag, b.address)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := g.checkExposed(b.address, l.Addr()); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// inherit returns the socket that systemd listens on for this process; nil: there is none.
func (b *beanstalkFlags) inherit() (net.Listener, error) {
	all, _ := activation.Listeners() // its error is always nil
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > 1 || all[0] == nil:
		return nil, usagef("give the unit one ListenStream", "systemd does not pass one socket that listens")
	}
	b.address = all[0].Addr().String()
	return all[0], nil
}

// open returns the server for clients of beanstalkd, if there is a listener for them. It uses TLS
// only where others can reach it, since few of these clients speak TLS.
func (b *beanstalkFlags) open(p *Program, c *tarry.Client, on *listeners, guard *guarding, metrics *tarryprom.Metrics, cfg *server.Config) (*beanstalk.Server, error) {
	if on.beanstalk == nil {
		return nil, nil
	}
	if b.as != "" {
		if _, err := guard.guard.ByName(b.as); err != nil {
			return nil, usagef("name one of --tokens", "--beanstalk-as: %v", err)
		}
	}
	switch c.Capabilities().Name {
	case "redis", "postgres", "mysql":
		fmt.Fprintln(p.Stderr, "tarry: in this store the ids of jobs are larger than 2^53: clients that hold them as floating-point numbers, as some in JavaScript do, address other jobs")
	}
	s, err := beanstalk.New(c, &beanstalk.Config{MaxJob: int(b.maxJob), Guard: cfg.Guard, As: b.as, Audit: cfg.Audit, ShutdownTimeout: cfg.ShutdownTimeout, Logger: cfg.Logger})
	if err != nil {
		return nil, usagef("", "%v", err)
	}
	if guard.cert != nil && exposed(on.beanstalk.Addr()) {
		on.beanstalk = tls.NewListener(on.beanstalk, guard.cert.TLS())
	}
	metrics.WatchBeanstalk(func() tarryprom.Beanstalk { return tarryprom.Beanstalk(s.Counts()) })
	cfg.Beanstalk = func() (connections, waiting int64) {
		n := s.Counts()
		return n.Connections, n.Waiting
	}
	return s, nil
}
