package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
)

// listeners are what serve listens on. One that is not wanted is nil.
type listeners struct{ http, beanstalk net.Listener }

// listen listens on the addresses of the flags, unless others could reach everything.
func (s *serveFlags) listen(ctx context.Context) (on *listeners, err error) {
	on = new(listeners)
	defer func() {
		if err != nil {
			on.close()
		}
	}()
	if !s.noHTTP {
		if on.http, err = listenTCP(ctx, "--http", s.http); err != nil {
			return on, err
		}
		if err = s.guard.checkExposed(s.http, on.http.Addr()); err != nil {
			return on, err
		}
	}
	on.beanstalk, err = s.beanstalk.listen(ctx, &s.guard)
	return on, err
}

func (on *listeners) close() {
	for _, l := range []net.Listener{on.http, on.beanstalk} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// warn says what any client that reaches the addresses can do.
func (on *listeners) warn(p *Program, s *serveFlags, guard *guarding) {
	if on.http != nil {
		guard.warn(p, s.http, on.http.Addr())
	}
	if on.beanstalk != nil {
		guard.warn(p, s.beanstalk.address, on.beanstalk.Addr())
	}
}

// listenTCP listens on an address HOST:PORT that a flag gave.
func listenTCP(ctx context.Context, flag, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	form, other := "an address is HOST:PORT, such as 127.0.0.1:8277", flag+" "+net.JoinHostPort(host, "0")
	if flag == "-p" {
		form, other = "-l takes an address such as 127.0.0.1, and -p a port such as 11300", "-p 0"
	}
	if err != nil || port == "" {
		return nil, usagef(form, "%s %q is not an address", flag, address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, failedf(err, "stop what listens there, or choose another with "+flag+", such as "+other,
			"cannot listen on %s: the port is in use", address)
	case errors.Is(err, syscall.EACCES):
		return nil, failedf(err, "choose a port above 1023", "cannot listen on %s: not allowed", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, usagef("choose an address of this machine, such as 127.0.0.1:8277", "cannot listen on %s: no such address here", address)
	case errors.As(err, new(*net.DNSError)), errors.As(err, new(*net.AddrError)):
		return nil, usagef(form, "cannot listen on %s: %v", address, err)
	}
	return nil, failedf(err, "choose another address with "+flag, "cannot listen on %s: %v", address, err)
}

// listenUnix listens on a unix socket. It removes a socket that was left behind, which nothing
// listens on.
func listenUnix(ctx context.Context, flag, path string) (net.Listener, error) {
	if path == "" {
		return nil, usagef("as in unix:/run/tarry.sock", "%s names no socket", flag)
	}
	var d net.Dialer
	if there, err := os.Lstat(path); err == nil && there.Mode().Type() == os.ModeSocket {
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			_ = c.Close()
			return nil, failedf(nil, "stop what listens there, or choose another with "+flag, "cannot listen on %s: the socket is in use", path)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // listening reports the error
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, failedf(err, "choose another socket with "+flag, "cannot listen on %s: %v", path, err)
	}
	return l, nil
}

// guardFlags say which clients may call a server, and set up TLS.
type guardFlags struct {
	tokens   string
	insecure bool
	auditLog string
	tls      server.TLSFiles
}

func (g *guardFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&g.tokens, "tokens", "", "file of the tokens that clients need; tarry token makes it")
	f.BoolVar(&g.insecure, "insecure", false, "serve beyond loopback without tokens")
	f.StringVar(&g.auditLog, "audit-log", "", "file for a line about each change that an operator makes (default standard error)")
	f.StringVar(&g.tls.Cert, "tls-cert", "", "certificate in PEM, for https alone; read again when it changes")
	f.StringVar(&g.tls.Key, "tls-key", "", "key of the certificate, in PEM")
	f.StringVar(&g.tls.ClientCA, "tls-client-ca", "", "authorities in PEM whose certificates clients have to bring")
}

func (g *guardFlags) check() error {
	switch {
	case (g.tls.Cert == "") != (g.tls.Key == ""):
		return usagef("give both, or neither", "of --tls-cert and --tls-key one is missing")
	case g.tls.ClientCA != "" && g.tls.Cert == "":
		return usagef("give --tls-cert and --tls-key too", "--tls-client-ca needs TLS")
	case g.tokens != "" && g.insecure:
		return usagef("give one of them", "both --tokens and --insecure are given")
	}
	return nil
}

// exposed reports whether other machines can reach a listener at this address. It checks the
// address that a name such as localhost was resolved to, not the name.
func exposed(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return addr.Network() != "unix" && (!ok || !tcp.IP.IsLoopback())
}

// checkExposed refuses to listen where others could reach everything.
func (g *guardFlags) checkExposed(address string, on net.Addr) error {
	if g.tokens != "" || g.insecure || !exposed(on) {
		return nil
	}
	return usagef("make one with tarry token create, and give its file with --tokens; --insecure serves without", "%s (%s) can be reached from other machines, and there are no tokens", address, on)
}

// warn says what any client that reaches the address can do.
func (o *guarding) warn(p *Program, address string, on net.Addr) {
	switch {
	case !exposed(on):
	case o.guard == nil:
		fmt.Fprintf(p.Stderr, "tarry: %s (%s) can be reached from other machines, and whoever reaches it may read and write everything\n", address, on)
	case o.cert == nil:
		fmt.Fprintf(p.Stderr, "tarry: %s (%s) can be reached from other machines without TLS, and tokens can be read on their way (give --tls-cert and --tls-key)\n", address, on)
	}
}

// guarding is what the flags opened. The audit log must be closed with it.
type guarding struct {
	guard *access.Guard
	audit *access.Audit
	cert  *server.Certificate // nil: no TLS
}

// open opens the files.
func (g *guardFlags) open(p *Program, logger *slog.Logger) (o *guarding, err error) {
	o = new(guarding)
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	to := io.Writer(p.Stderr)
	if g.auditLog != "" {
		f, err := auditFile(g.auditLog).open()
		if err != nil {
			return o, usagef("name a file that can be written to", "--audit-log: %v", err)
		}
		_ = f.Close()
		to = newLossyWriter(auditFile(g.auditLog), false)
	}
	o.audit = access.NewAudit(to)
	o.audit.Logger = logger
	if g.tls.Cert != "" {
		if o.cert, err = g.tls.Open(logger); err != nil {
			return o, usagef("they are the certificate and its own key, in PEM", "--tls-cert, --tls-key, --tls-client-ca: %v", err)
		}
	}
	if g.tokens != "" {
		o.guard, err = access.NewGuard(access.File(g.tokens), &access.GuardConfig{Logger: logger, Audit: o.audit})
		switch {
		case errors.Is(err, os.ErrNotExist):
			return o, usagef("tarry token create makes it", "--tokens: there is no file %s", g.tokens)
		case err != nil:
			return o, usagef("", "--tokens: %v", err)
		}
	}
	return o, nil
}

// refresh reads the tokens and the certificate again.
func (o *guarding) refresh() {
	if o.guard != nil {
		o.guard.Refresh()
	}
	if o.cert != nil {
		o.cert.Refresh()
	}
}

func (o *guarding) close() {
	if o.audit != nil {
		o.audit.Close()
	}
}

// welcome says where the server listens, where it stores data, and what to try first.
func (p *Program) welcome(on *listeners, s *serveFlags, caps tarry.Capabilities) {
	data := "engine " + shown(caps.Name)
	if dir, ok := diskDir(s.store); ok {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		data = dir
	} else if caps.Name == "mem" {
		data = "in memory only; it is lost when this process ends"
	}
	if on.http == nil {
		fmt.Fprintf(p.Stdout, "tarry %s listens on %s for clients of beanstalkd\ndata: %s\n", readBuild().Version, reachable(on.beanstalk.Addr()), data)
		return
	}
	url, at, with := "http://"+reachable(on.http.Addr()), "", ""
	if s.guard.tls.Cert != "" {
		url = "https://" + reachable(on.http.Addr())
	}
	if url != defaultServer {
		at = " --server " + url
	}
	if s.guard.tokens != "" {
		with = ", with a token in TARRY_TOKEN"
	}
	fmt.Fprintf(p.Stdout, "tarry %s listens on %s\ndashboard: %[2]s/\n", readBuild().Version, url)
	if on.beanstalk != nil {
		fmt.Fprintln(p.Stdout, "clients of beanstalkd:", reachable(on.beanstalk.Addr()))
	}
	fmt.Fprintf(p.Stdout, `data: %s
try%s:
  tarry push hello '"hi"' --in 10s%s
  tarry work hello%[3]s -- cat
`, data, with, at)
}

// reachable returns an address that a client on this machine can use.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case ok && tcp.IP.IsUnspecified():
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	case addr.Network() == "unix":
		return "unix:" + addr.String()
	}
	return addr.String()
}
