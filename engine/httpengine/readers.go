package httpengine

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// warnOfReaders warns once when the token leaves this machine without TLS. Only a resolver
// knows where the name localhost leads, so for such a host it checks the address of each
// connection. With a caller's own transport it cannot.
func (e *Engine) warnOfReaders(log *slog.Logger) {
	warn := sync.OnceFunc(func() {
		log.Warn("the token is sent without TLS and can be read on its way; use https://", "server", e.base.Host)
	})
	switch {
	case !local(e.base.Hostname()):
		warn()
	case e.own != nil: // net/http uses no proxy for localhost and loopback addresses
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

// onLoopback reports whether data sent to an address stays on this machine.
func onLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// local reports whether a host's name or address is one of this machine.
func local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}
