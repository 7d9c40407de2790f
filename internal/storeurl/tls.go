package storeurl

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// TLS takes the certificate options: ca_file has authorities to trust besides the system's;
// cert_file and key_file have the client's own certificate.
func (r *Reader) TLS() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12} // the client sets ServerName
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
