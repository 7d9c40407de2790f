package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/secretfile"
	"github.com/tarryhq/tarry/server"
)

// locked is a buffer for a logger of many goroutines.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// secured is a server that listens with TLS.
type secured struct {
	address string
	log     *locked
}

func newSecured(t *testing.T, files server.TLSFiles, cfg server.Config) *secured {
	t.Helper()
	s := &secured{log: new(locked)}
	cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	var err error
	if cfg.Certificate, err = files.Open(cfg.Logger); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	c := tarry.New(memengine.New(nil), nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- newServer(t, c, &cfg).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = c.Close()
		_ = c.Engine().Close()
	})
	return s
}

// trusting is what a client has that trusts a certificate and brings one, or none.
func trusting(t *testing.T, certFile string, own *tls.Config) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
	c.RootCAs.AppendCertsFromPEM(pem)
	if own != nil {
		c.Certificates = own.Certificates
	}
	return c
}

// get asks for a path on a connection of its own; its body with the status before it.
func (s *secured) get(t *testing.T, c *tls.Config, path string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	resp, err := client.Get("https://" + s.address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Proto, body), err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTLSFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	_, otherCert, otherKey := nettest.Certificate(t)
	first := trusting(t, cert, nil)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key}, server.Config{})
	if got, err := s.get(t, first, "/healthz"); err != nil || got != `200 HTTP/1.1 {"status":"ok"}` {
		t.Fatalf("%q, %v", got, err)
	}
	copyFile(t, otherCert, cert) // no longer one pair
	time.Sleep(secretfile.CheckInterval)
	if _, err := s.get(t, first, "/healthz"); err != nil {
		t.Errorf("with a pair that does not match: %v", err)
	}
	if !strings.Contains(s.log.String(), "private key does not match public key") {
		t.Errorf("logged was %s", s.log)
	}
	copyFile(t, otherKey, key)
	time.Sleep(secretfile.CheckInterval)
	if _, err := s.get(t, trusting(t, otherCert, nil), "/healthz"); err != nil {
		t.Errorf("with the new pair: %v", err)
	}
	if _, err := s.get(t, first, "/healthz"); err == nil {
		t.Error("the old certificate is still shown")
	}
}

func TestTLSFilesThatWillNotDo(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	_, otherCert, _ := nettest.Certificate(t)
	for want, files := range map[string]server.TLSFiles{
		"no such file":                          {Cert: "/nowhere", Key: key},
		"private key does not match public key": {Cert: otherCert, Key: key},
		"failed to find":                        {Cert: key, Key: key},
		key + " has no certificate":             {Cert: cert, Key: key, ClientCA: key},
	} {
		if _, err := files.Open(slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	known, knownCert, _ := nettest.Certificate(t)
	stranger, _, _ := nettest.Certificate(t)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key, ClientCA: knownCert}, server.Config{})
	if got, err := s.get(t, trusting(t, cert, known), "/healthz"); err != nil || !strings.HasPrefix(got, "200 ") {
		t.Errorf("with a certificate: %q, %v", got, err)
	}
	for name, own := range map[string]*tls.Config{"none": nil, "a stranger's": stranger} {
		if got, err := s.get(t, trusting(t, cert, own), "/healthz"); err == nil {
			t.Errorf("with the certificate %s: %s", name, got)
		}
	}
	// The client may hear of the refusal before the server logs it.
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.log.String(), "client didn't provide a certificate"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("logged was %s", s.log)
		}
	}
}

// Who speaks no TLS, or no HTTP in it, is told so.
func TestErrorsAroundTLS(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key}, server.Config{})
	plain, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	secure, err := tls.Dial("tcp", s.address, trusting(t, cert, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	for want, c := range map[string]net.Conn{"Client sent an HTTP request to an HTTPS server": plain, "400 Bad Request": secure} {
		fmt.Fprint(c, "GET /\x00 HTTP/1.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 400 || !strings.Contains(string(body), want) {
			t.Errorf("%d %s, %v", resp.StatusCode, body, err)
		}
	}
}

// However many connections fail, the log has a few lines about them.
func TestManyConnectionsThatFail(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key}, server.Config{})
	const many = 60
	began := time.Now()
	for range many {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "no TLS at all\r\n\r\n")
		_, _ = io.Copy(io.Discard, c) // until it is closed
		_ = c.Close()
	}
	most := 10 + 1 + int(time.Since(began)/(10*time.Second))
	if n := strings.Count(s.log.String(), "TLS handshake error"); n < 10 || n > most {
		t.Errorf("%d lines were logged, want 10 to %d", n, most)
	}
}

// A connection over TLS that idles gives way, also when its client does not read.
func TestConnectionsOverTLSGiveWay(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key}, server.Config{MaxConnections: 1})
	trust := trusting(t, cert, nil)
	idle, err := tls.Dial("tcp", s.address, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		got, err := s.get(t, trust, "/healthz")
		if err == nil && strings.HasPrefix(got, "200 ") {
			break
		}
		if err != nil || !strings.Contains(got, "as many connections as it may") || time.Now().After(deadline) {
			t.Fatalf("%q, %v", got, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("it is still open")
	}
}

// Ciphers that are broken are not spoken, with TLS 1.2 either.
func TestCiphersOfTLS12(t *testing.T) {
	t.Parallel()
	_, cert, key := nettest.Certificate(t)
	s := newSecured(t, server.TLSFiles{Cert: cert, Key: key}, server.Config{})
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		cfg := trusting(t, cert, nil)
		cfg.MaxVersion, cfg.CipherSuites = tls.VersionTLS12, []uint16{suite.ID}
		c, err := tls.Dial("tcp", s.address, cfg)
		if err != nil {
			continue
		}
		_ = c.Close()
		if strings.Contains(suite.Name, "_CBC_") || !strings.Contains(suite.Name, "_ECDHE_") {
			t.Errorf("%s is spoken", suite.Name)
		}
	}
	cfg := trusting(t, cert, nil)
	cfg.MaxVersion = tls.VersionTLS12
	if got, err := s.get(t, cfg, "/healthz"); err != nil || !strings.HasPrefix(got, "200 ") {
		t.Errorf("over TLS 1.2: %q, %v", got, err)
	}
}
