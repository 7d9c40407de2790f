package httpengine

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// warnOfReaders warns, once, when the token leaves this machine without TLS. A host that
// is called localhost is where a resolver says: of it the address tells that a connection
// was made to, unless the transport is another's.
func (e *Engine) warnOfReaders(log *slog.Logger) {
	warn := sync.OnceFunc(func() {
		log.Warn("the token is sent without TLS and can be read on its way; use https://", "server", e.base.Host)
	})
	switch {
	case !local(e.base.Hostname()):
		warn()
	case e.own != nil: // no proxy is asked for what is called so
		dial := e.own.DialContext
		e.own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err == nil && !onLoopback(c.RemoteAddr()) {
				warn()
			}
			return c, err
		}
	}
}

// onLoopback reports whether what is sent to an address stays on this machine.
func onLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// local reports whether a host is this machine by what it is called.
func local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}
