package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/internal/fresh"
	"github.com/tarryhq/tarry/internal/sparse"
	"github.com/tarryhq/tarry/internal/wire"
)

// TLSFiles are the files that a server needs for TLS, in PEM.
type TLSFiles struct {
	Cert, Key string // the certificate, with those between it and its authority, and its key
	ClientCA  string // the authorities of clients, which then have to bring a certificate; "": they need none
}

// Config reads the files and returns a configuration that reads them again, at most once
// a second, when they have changed, for the connections to come. Files that are then
// broken, or do not belong together, change nothing; log is told.
func (f TLSFiles) Config(log *slog.Logger) (*tls.Config, error) {
	paths := []string{f.Cert, f.Key}
	if f.ClientCA != "" {
		paths = append(paths, f.ClientCA)
	}
	failed := func(err error) {
		log.Error("the files for TLS cannot be read again, and what was read before is used on", "error", err)
	}
	v, err := fresh.New(f.read, failed, paths...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return v.Get(), nil },
	}, nil
}

func (f TLSFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair}}
	if f.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", f.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.SessionTicketsDisabled = true // a session must not outlive its authority here
	return c, nil
}

// secureConn is a conn over TLS, in which all is read and written as in any other. By
// ConnectionState net/http knows it.
type secureConn struct {
	*conn
	tls     *tls.Conn
	timeout time.Duration // for the handshake
	log     *slog.Logger
	told    *sparse.Lines // of handshakes that failed
}

// ConnectionState is what was agreed on: net/http asks for it, once, before it reads the
// first request. So here is the handshake; after one that has failed nothing can be read.
func (c *secureConn) ConnectionState() tls.ConnectionState {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if err := c.tls.HandshakeContext(ctx); err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, context.DeadlineExceeded) {
			if left, ok := c.told.Next(); ok { // who cannot speak TLS can still connect, as often as he likes
				c.log.Warn("a connection failed before its first request", "from", c.RemoteAddr().String(), "error", err, "not_told", left)
			}
		}
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil {
			_, _ = plain.Conn.Write(notSecure)
		}
	}
	return c.tls.ConnectionState()
}

// notSecure answers who speaks HTTP without TLS.
var notSecure = lastAnswer(refusal(http.StatusBadRequest, "invalid", "this server wants TLS", "call it by https://"))

// lastAnswer is an answer after which the connection is closed, with its head.
func lastAnswer(f *wire.Error, head ...string) []byte {
	body := wire.AppendError(nil, f)
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n", f.Status, http.StatusText(f.Status))
	for _, h := range head {
		b = append(append(b, h...), "\r\n"...)
	}
	b = append(b, "Connection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"...)
	return append(b, body...)
}
