package redistest

import (
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Proxy passes connections on to a server, and spoils them as it is told.
type Proxy struct{ *servertest.Proxy }

// StartProxy starts a proxy for the server at a host:port.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	return &Proxy{servertest.StartProxy(t, to)}
}

// URL is the redis:// URL of the server as seen through the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }
