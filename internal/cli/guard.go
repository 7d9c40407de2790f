package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
)

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

// checkAddress refuses an open address without protection, unless that was asked for.
func (g *guardFlags) checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return nil // open to others or not: the listener will show
	}
	ip, _ := netip.ParseAddr(host) // a name gives no address, and counts as open to others
	return g.checkExposed(address, &net.TCPAddr{IP: ip.AsSlice()})
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
	return usagef("make one with tarry token create, and give its file with --tokens; --insecure serves without", "%s can be reached from other machines, and there are no tokens", addressText(address, on))
}

// addressText returns an address as given; for localhost it adds the address it stands for.
func addressText(address string, on net.Addr) string {
	if host, _, _ := net.SplitHostPort(address); host == "localhost" {
		return address + ", which is " + on.String() + ","
	}
	return address
}

// warn says what any client that reaches the address can do.
func (o *guarding) warn(p *Program, address string, on net.Addr) {
	switch {
	case !exposed(on):
	case o.guard == nil:
		fmt.Fprintf(p.Stderr, "tarry: %s can be reached from other machines, and whoever reaches it may read and write everything\n", addressText(address, on))
	case o.cert == nil:
		fmt.Fprintf(p.Stderr, "tarry: %s can be reached from other machines without TLS, and tokens can be read on their way (give --tls-cert and --tls-key)\n", addressText(address, on))
	}
}

// guarding is what the flags opened. The audit log must be closed with it.
type guarding struct {
	guard *access.Guard
	audit *access.Audit
	cert  *server.Certificate // nil: no TLS
	file  *auditFile
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
		if o.file, err = openAuditFile(g.auditLog); err != nil {
			return o, usagef("name a file that can be written to", "--audit-log: %v", err)
		}
		to = newLossyWriter(o.file, false)
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
	if o.file != nil {
		_ = o.file.f.Close()
	}
}
