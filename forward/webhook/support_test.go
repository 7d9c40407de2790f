package webhook

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// secret is of 24 bytes.
const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

func message(body string, headers ...forward.Header) *tarry.Message[[]byte] {
	m := &tarry.Message[[]byte]{Body: []byte(body), Info: tarry.Info{
		ID: 7, Queue: "order.paid", Key: "42", Attempt: 1,
		Due:     time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		Created: time.Date(2026, 5, 4, 3, 0, 0, 5e6, time.UTC),
	}}
	m.Headers, m.ContentType = headers, "application/json"
	m.Backoff = []time.Duration{15 * time.Second}
	return m
}

// local is the options of a target on this machine.
func local() forward.Options {
	return forward.Options{AllowPrivate: true, Timeout: time.Minute} // on a busy machine too
}

func open(t testing.TB, cfg *Config) *Target {
	t.Helper()
	target, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// serve returns the URL of a server on loopback.
func serve(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveRaw returns the URL of a server that answers with the bytes that answer writes, once
// the head of a request was read.
func serveRaw(t testing.TB, answer func(conn net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() { l.Close(); conns.Wait() })
	conns.Go(func() { acceptRaw(l, &conns, answer) })
	return "http://" + l.Addr().String()
}

func acceptRaw(l net.Listener, conns *sync.WaitGroup, answer func(conn net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conns.Go(func() {
			defer conn.Close()
			if readHead(conn) == nil {
				answer(conn)
			}
		})
	}
}

// readHead reads a request's head, byte by byte, as what follows is not its own.
func readHead(conn net.Conn) error {
	var last [4]byte
	for last != [4]byte{'\r', '\n', '\r', '\n'} {
		copy(last[:], last[1:])
		if _, err := io.ReadFull(conn, last[3:]); err != nil {
			return err
		}
	}
	return nil
}
