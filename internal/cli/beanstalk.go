package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/beanstalk"
	"github.com/tarryhq/tarry/tarryprom"
)

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
