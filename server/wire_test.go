package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// pipes is a listener of connections in memory, which live inside a bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// served is a server inside a bubble, with a client's side to it.
type served struct {
	*api
	http *http.Client
	ln   *pipes // of serve and serveConfig
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	stop context.CancelFunc
	done chan error
}

func serve(t *testing.T) *served { return serveConfig(t, nil) }

func serveConfig(t *testing.T, cfg *server.Config) *served {
	p := newPipes()
	s := serveListener(t, cfg, p)
	s.ln, s.dial = p, p.dial
	s.http = &http.Client{Transport: &http.Transport{DialContext: s.dial, MaxIdleConnsPerHost: 200}}
	return s
}

func serveListener(t testing.TB, cfg *server.Config, ln net.Listener) *served {
	c := tarry.New(memengine.New(nil), nil)
	return serveAs(t, c, newServer(t, c, cfg), ln)
}

func serveAs(t testing.TB, c *tarry.Client, as *server.Watched, ln net.Listener) *served {
	s := &served{api: &api{TB: t, c: c, s: as}, http: new(http.Client), done: make(chan error, 1)}
	s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.done <- s.s.Serve(ctx, ln) }()
	return s
}

func (s *served) end() {
	s.http.CloseIdleConnections()
	s.stop()
	if err := <-s.done; err != nil {
		s.Error(err)
	}
	_ = s.c.Close()
}

func (s *served) poll(ctx context.Context, body string) (string, error) {
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://localhost/v1/lease", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

// wire is a connection on which a test writes and reads bytes as no client would.
type wire struct {
	net.Conn
	in *bufio.Reader
	t  testing.TB
}

func (s *served) wire() *wire {
	conn, err := s.dial(context.Background(), "", "")
	if err != nil {
		s.Fatal(err)
	}
	return s.over(conn)
}

func (s *served) over(conn net.Conn) *wire { return &wire{conn, bufio.NewReader(conn), s} }

// say writes in the background, until the server no longer reads, and returns a
// channel that tells how many bytes it took.
func (w *wire) say(text string) <-chan int {
	took := make(chan int, 1)
	go func() {
		n, _ := io.WriteString(w.Conn, text)
		took <- n
	}()
	return took
}

// answer reads one answer, which has to be of a status; an error has to have its
// shape.
func (w *wire) answer(status int) string {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	rec := httptest.NewRecorder()
	rec.Code = resp.StatusCode
	rec.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	if _, err := rec.Body.ReadFrom(resp.Body); err != nil {
		w.t.Fatalf("the answer broke off: %v", err)
	}
	if rec.Code != status {
		w.t.Fatalf("status %d, want %d: %.300s", rec.Code, status, rec.Body)
	}
	if status >= 400 {
		checkError(w.t, rec)
	}
	return rec.Body.String()
}

// unread reads the answer to a request that net/http could not read.
func (w *wire) unread(status int) {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || !resp.Close || strings.HasPrefix(string(text), "{") {
		w.t.Errorf("status %d, want %d: %s, %v", resp.StatusCode, status, text, err)
	}
}

// slow reads from a connection no more than n bytes, and then not for a while.
type slow struct {
	net.Conn
	n     int
	pause time.Duration
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Conn.Read(p[:min(len(p), s.n)])
}

// ended waits for the end of the connection, at which nothing may be unread.
func (w *wire) ended() {
	w.t.Helper()
	if b, err := io.ReadAll(w.in); err != nil || len(b) > 0 {
		w.t.Errorf("instead of the connection's end %q came, %v", b, err)
	}
}

// request is the text of a request with a body.
func request(method, path, body string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body
}
