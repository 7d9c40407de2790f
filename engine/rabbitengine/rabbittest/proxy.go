package rabbittest

import (
	"net/url"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Proxy forwards connections to a broker and injects faults.
type Proxy struct {
	*servertest.Proxy
	url string
}

// StartProxy starts a proxy for the broker of a vhost's URL.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Proxy: servertest.StartProxy(t, u.Host)}
	u.Host = p.Addr()
	p.url = u.String()
	return p
}

// URL is the URL of the vhost through the proxy.
func (p *Proxy) URL() string { return p.url }
