package httpengine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// served runs a server that counts its connections, and returns a transport to it.
func served(t *testing.T, h http.HandlerFunc) (tr *transport, s *httptest.Server, conns *atomic.Int32) {
	t.Helper()
	conns = new(atomic.Int32)
	s = httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	tr = newTransport(s.Listener.Addr().String())
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	return tr, s, conns
}

// post posts a body and returns the status and body of the answer.
func (t *transport) post(ctx context.Context, body []byte) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.addr+"/x", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}

func echo(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	_, _ = w.Write(b)
}

func TestTransportUsesAConnectionAgain(t *testing.T) {
	tr, _, conns := served(t, echo)
	for _, body := range []string{"a", strings.Repeat("b", 100<<10), "", "c"} {
		if status, got, err := tr.post(t.Context(), []byte(body)); status != http.StatusOK || got != body || err != nil {
			t.Errorf("%d, %d bytes, %v; want %d bytes", status, len(got), err, len(body))
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A connection on which the server has hung up meanwhile is not used again.
func TestTransportSeesThatTheServerHungUp(t *testing.T) {
	tr, s, conns := served(t, echo)
	for range 3 {
		if _, got, err := tr.post(t.Context(), []byte("x")); got != "x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if len(tr.idle) != 1 {
			t.Fatalf("%d connections are kept, want 1", len(tr.idle))
		}
		s.CloseClientConnections() // returns when they are closed
		for alive(tr.idle[0].Conn) {
			// until the end has come through
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestTransportEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{}, 1)
	tr, _, conns := served(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	})
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, _, err := tr.post(ctx, []byte("x")); done <- err }()
		<-asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if len(tr.idle) != 0 || conns.Load() != 2 {
		t.Errorf("%d connections are kept of %d", len(tr.idle), conns.Load())
	}
}

// An answer that is not read to its end, or after which the server hangs up, ends its
// connection.
func TestTransportKeepsNoConnectionThatIsNotDone(t *testing.T) {
	tr, _, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1 {
			w.Header().Set("Connection", "close")
		}
		_, _ = w.Write(make([]byte, 64<<10))
	})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tr.addr+"/", nil)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if _, _, err := tr.post(t.Context(), []byte("xx")); err != nil {
		t.Error(err)
	}
	if n := len(tr.idle); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// A server that refuses a request before it has read all of it is heard.
func TestTransportHearsARefusalAheadOfTheEnd(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}()
	tr := newTransport(ln.Addr().String())
	defer tr.CloseIdleConnections()
	if status, got, err := tr.post(t.Context(), make([]byte, 4<<20)); status != http.StatusRequestEntityTooLarge || got != "no" || err != nil {
		t.Errorf("%d, %q, %v", status, got, err)
	}
}

func TestTransportClosesWhatIsIdleForLong(t *testing.T) {
	tr, _, _ := served(t, echo)
	if _, _, err := tr.post(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	tr.trim()
	if len(tr.idle) != 1 {
		t.Fatalf("%d are kept at once", len(tr.idle))
	}
	c := tr.idle[0]
	c.at = c.at.Add(-maxRest)
	tr.trim()
	if len(tr.idle) != 0 || c.SetDeadline(time.Time{}) == nil {
		t.Errorf("%d are kept, or it was not closed", len(tr.idle))
	}
	if _, _, err := tr.post(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c = tr.idle[0]
	tr.CloseIdleConnections()
	if c.SetDeadline(time.Time{}) == nil {
		t.Error("it was not closed")
	}
}
