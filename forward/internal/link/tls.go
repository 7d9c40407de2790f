package link

import (
	"crypto/tls"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// TLS takes the options about certificates out of a URL. They go before those of o.
func TLS(r *storeurl.Reader, o *forward.Options) *tls.Config {
	c := r.TLS()
	if o.TLS == nil {
		return c
	}
	of := o.TLS.Clone()
	if c.RootCAs != nil {
		of.RootCAs = c.RootCAs
	}
	if c.Certificates != nil {
		of.Certificates = c.Certificates
	}
	return of
}
