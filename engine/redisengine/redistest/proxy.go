package redistest

import (
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Proxy forwards connections to a server and injects faults.
type Proxy struct{ *servertest.Proxy }

// StartProxy starts a proxy for the server at a host:port.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	return &Proxy{servertest.StartProxy(t, to)}
}

// URL is the redis:// URL of the server through the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }
