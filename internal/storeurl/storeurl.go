// Package storeurl parses the URLs of stores and of forwarding targets, such as
// disk:tarry-data?memory=1GiB or redis://user@host:6379/0?password_file=/run/secrets/redis.
//
// An engine makes a Reader, takes the parts and options that it knows, and calls Done for
// the error:
//
//	r := storeurl.New(u)
//	cfg := new(Config)
//	r.Int("max_pending", &cfg.MaxPending)
//	r.Bytes("memory", &cfg.MemoryBytes)
//	if err := r.Done(); err != nil {
//		return nil, err
//	}
//
// Done rejects options that were not taken, and lists the known ones. No error repeats a
// value, since any part of a URL may be part of an unescaped password.
package storeurl

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// Reader reads the options of a URL and keeps the first error. A method that takes an option
// stores it through the given pointer if the URL has it, and reports whether it did. A Reader
// is not safe for concurrent use.
type Reader struct {
	url    *url.URL
	values url.Values // not taken yet
	known  []string
	err    error
}

// New returns a Reader of u, which it does not change.
func New(u *url.URL) *Reader {
	r := &Reader{url: u}
	var err error
	if r.values, err = url.ParseQuery(u.RawQuery); err != nil {
		r.Fail("the options behind ? are not well percent-encoded")
	}
	return r
}

// Fail records what is wrong and what to do instead, unless there is an error already. The
// text must not repeat parts of the URL.
func (r *Reader) Fail(hint string, args ...any) {
	if r.err == nil {
		r.err = &engine.Error{Op: "open", Err: engine.ErrInvalid, Hint: fmt.Sprintf(hint, args...)}
	}
}

// Done returns the first error, or an error for an option that was not taken; else nil. The
// errors are engine.ErrInvalid.
func (r *Reader) Done() error {
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		slices.Sort(r.known)
		switch {
		case strings.Contains(name+r.url.RawQuery, "@"):
			r.Fail(escape) // the name may be part of a password
		case len(r.known) == 0:
			r.Fail("the scheme %s takes no options, so no %q", r.url.Scheme, name)
		default:
			r.Fail("the scheme %s has no option %q; it has %s", r.url.Scheme, name, strings.Join(r.known, ", "))
		}
	}
	return r.err
}

const escape = "in a password, escape / ? # and @"

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
