package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tarryhq/tarry/internal/secretfile"
	"github.com/tarryhq/tarry/internal/wire"
)

// TLSFiles names the files that a server needs for TLS, in PEM.
type TLSFiles struct {
	Cert, Key string // the certificate, with the intermediate ones behind it, and its key
	ClientCA  string // the authorities for client certificates, which clients must then present; "": they need none
}

// Certificate is the certificate that a server shows its clients, read again when its files
// change. It may be used by many goroutines.
type Certificate struct {
	log   *slog.Logger
	path  string
	files *secretfile.Value[*shown]
}

// shown is the content of the files when they were read.
type shown struct {
	tls  *tls.Config
	leaf *x509.Certificate
}

// Open reads the files. They are read again when they have changed, at most once a second. If
// they are then broken or do not match, the old content stays in use and log is told. At each
// successful read log is told when the certificate ends.
func (f TLSFiles) Open(log *slog.Logger) (*Certificate, error) {
	c := &Certificate{log: log, path: f.Cert}
	paths := []string{f.Cert, f.Key}
	if f.ClientCA != "" {
		paths = append(paths, f.ClientCA)
	}
	read := func() (*shown, error) {
		s, err := f.read()
		if err == nil {
			c.tell(s.leaf)
		}
		return s, err
	}
	failed := func(err error) {
		log.Error("the files for TLS cannot be read again, and what was read before is used on", "error", err)
	}
	var err error
	c.files, err = secretfile.NewValue(read, failed, paths...)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// TLS returns the configuration for new connections. Each uses the newest content of the
// files.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.files.Get().tls, nil },
	}
}

// End returns when the certificate ends.
func (c *Certificate) End() time.Time { return c.files.Get().leaf.NotAfter }

// Refresh looks at once for changes to the files.
func (c *Certificate) Refresh() { c.files.Refresh() }

// soon is how long before its end a certificate is reported, or a quarter of its lifetime if
// that is shorter. ACME clients renew earlier, when a third is left.
const soon = 14 * 24 * time.Hour

func endsSoon(leaf *x509.Certificate, now time.Time) bool {
	return leaf.NotAfter.Sub(now) < min(soon, leaf.NotAfter.Sub(leaf.NotBefore)/4)
}

// tell logs when the certificate just read ends.
func (c *Certificate) tell(leaf *x509.Certificate) {
	level, message := slog.LevelInfo, "the certificate was read"
	if now := time.Now(); now.After(leaf.NotAfter) {
		level, message = slog.LevelError, "the certificate has ended, and clients refuse it"
	} else if endsSoon(leaf, now) {
		level, message = slog.LevelWarn, "the certificate ends soon"
	}
	c.log.Log(context.Background(), level, message, "end", leaf.NotAfter.UTC(), "file", c.path)
}

// trouble returns the problem with the certificate; "": none.
func (c *Certificate) trouble(now time.Time) (message, hint string) {
	leaf := c.files.Get().leaf
	left := leaf.NotAfter.Sub(now).Round(time.Minute)
	hint = "put a new one, with its key, in the place of the files that --tls-cert and --tls-key name: they are read again by themselves"
	switch {
	case left <= 0:
		return "the server's certificate has ended, on " + leaf.NotAfter.UTC().Format(wire.TimeFormat), hint
	case endsSoon(leaf, now):
		return fmt.Sprintf("the server's certificate ends in %s, on %s", lasting(left), leaf.NotAfter.UTC().Format(wire.TimeFormat)), hint
	}
	return "", ""
}

// lasting returns a duration for people to read: in days from two days on.
func lasting(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// suites are the TLS 1.2 ciphers as good as those of 1.3: they have forward secrecy and no
// CBC.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

func (f TLSFiles) read() (*shown, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Cert, err)
	}
	s := &shown{&tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: suites, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair}}, leaf}
	if f.ClientCA == "" {
		return s, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, err
	}
	s.tls.ClientCAs = x509.NewCertPool()
	if !s.tls.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", f.ClientCA)
	}
	s.tls.ClientAuth = tls.RequireAndVerifyClientCert
	s.tls.SessionTicketsDisabled = true // else a resumed session would outlive its authority in ClientCA
	return s, nil
}
