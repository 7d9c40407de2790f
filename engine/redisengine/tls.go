package redisengine

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/tarryhq/tarry/engine/internal/storeurl"
)

// readTLS reads the options about certificates.
func readTLS(r *storeurl.Reader) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12} // each node is held to its own name
	var path, cert, key string
	if r.Text("ca_file", &path) {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			r.Fail("ca_file: %v", err)
		} else if !pool.AppendCertsFromPEM(pem) {
			r.Fail("ca_file: %s has no certificate in PEM", path)
		}
		c.RootCAs = pool
	}
	withCert, withKey := r.Text("cert_file", &cert), r.Text("key_file", &key)
	if withCert || withKey {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			r.Fail("cert_file and key_file: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
