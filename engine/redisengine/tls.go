package redisengine

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// tls reads the parameters about certificates.
func (p *parser) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12} // each node is held to its own name
	if path := p.text("ca_file"); path != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			p.fail("ca_file: %v", err)
		} else if !pool.AppendCertsFromPEM(pem) {
			p.fail("ca_file: %s has no certificate in PEM", path)
		}
		c.RootCAs = pool
	}
	if cert, key := p.text("cert_file"), p.text("key_file"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			p.fail("cert_file and key_file: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}
