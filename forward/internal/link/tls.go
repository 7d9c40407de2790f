package link

import (
	"crypto/tls"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// TLS reads the certificate options of a URL. They take precedence over those of o.
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
