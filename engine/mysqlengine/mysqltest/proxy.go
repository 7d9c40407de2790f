package mysqltest

import (
	"net/url"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Proxy passes connections on to a server, and spoils them as it is told.
type Proxy struct {
	*servertest.Proxy
	url string
}

// StartProxy starts a proxy for the server of a database's URL.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p := &Proxy{}
	p.url = at(t, to, func(u *url.URL) {
		p.Proxy = servertest.StartProxy(t, u.Host)
		u.Host = p.Addr()
	})
	return p
}

// URL is that of the database as seen through the proxy.
func (p *Proxy) URL() string { return p.url }
