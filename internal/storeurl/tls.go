package storeurl

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS takes the certificate options: ca_file has authorities to trust besides the system's;
// cert_file and key_file have the client's own certificate.
func (r *Reader) TLS() *tls.Config {
	file := func(name string) (path string) {
		if r.Text(name, &path) && path == "" {
			r.Fail("%s names no file", name)
		}
		return path
	}
	c, caErr, certErr := ClientTLS(file("ca_file"), file("cert_file"), file("key_file"))
	if caErr != nil {
		r.Fail("ca_file: %v", caErr)
	}
	if certErr != nil {
		r.Fail("cert_file and key_file: %v", certErr)
	}
	return c
}

// TLSOver is TLS with what base has besides. The options take precedence.
func (r *Reader) TLSOver(base *tls.Config) *tls.Config {
	c := r.TLS()
	if base == nil {
		return c
	}
	base = base.Clone()
	if c.RootCAs != nil {
		base.RootCAs = c.RootCAs
	}
	if c.Certificates != nil {
		base.Certificates = c.Certificates
	}
	return base
}

// ClientTLS returns what a client needs for TLS: authorities to trust besides the system's, and
// its own certificate, each from a file unless the name is empty. The errors are about ca, and
// about cert and key.
func ClientTLS(ca, cert, key string) (c *tls.Config, caErr, certErr error) {
	c = &tls.Config{MinVersion: tls.VersionTLS12} // the client sets ServerName
	if ca != "" {
		c.RootCAs, caErr = authorities(ca)
	}
	if cert != "" || key != "" {
		var pair tls.Certificate
		pair, certErr = tls.LoadX509KeyPair(cert, key)
		c.Certificates = []tls.Certificate{pair}
	}
	return c, caErr, certErr
}

// authorities returns the system's authorities and those in a file.
func authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}
