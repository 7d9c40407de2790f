package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	p    *pipes
	stop context.CancelFunc
	done chan error
}

func serve(t *testing.T) *served {
	c := tarry.New(memengine.New(nil), nil)
	s := &served{api: &api{TB: t, c: c, s: server.New(c, nil)}, p: newPipes(), done: make(chan error, 1)}
	s.http = &http.Client{Transport: &http.Transport{DialContext: s.p.dial, MaxIdleConnsPerHost: 200}}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.done <- s.s.Serve(ctx, s.p) }()
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
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://pipe/v1/lease", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		start := time.Now()
		if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"20s"}`); err != nil || !strings.HasPrefix(got, `200 {"messages":[],`) || time.Since(start) != 20*time.Second {
			t.Errorf("an idle poll: %s, %v after %v", got, err, time.Since(start))
		}
		s.call(201, "POST", "/v1/queues/q/messages", `{"key":"k","delay":"5s"}`)
		start = time.Now()
		if got, err := s.poll(t.Context(), `{"queues":["p","q"],"wait":"20s"}`); err != nil || !strings.Contains(got, `"key":"k"`) || time.Since(start) != 5*time.Second {
			t.Errorf("%s, %v after %v", got, err, time.Since(start))
		}
	})
}

// A client that leaves while it waits gets nothing, and takes nothing along.
func TestLongPollClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := s.poll(ctx, `{"queues":["q"],"wait":"20s"}`)
			gone <- err
		}()
		synctest.Wait()
		leave()
		if err := <-gone; err == nil {
			t.Error("an answer came")
		}
		synctest.Wait()
		s.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
		synctest.Wait()
		if m := s.call(200, "GET", "/v1/queues/q/keys/k", ""); m["state"] != "ready" || m["attempt"] != 0.0 {
			t.Errorf("%v", m)
		}
	})
}

func TestShutdownEndsLongPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		var polls sync.WaitGroup
		for range 100 {
			polls.Go(func() {
				if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"60s"}`); err != nil || !strings.HasPrefix(got, `200 {"messages":[],`) {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		s.end()
		polls.Wait()
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// net/http answers by itself when it cannot read a request at all.
func TestUnreadableRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		for request, want := range map[string]int{
			"NONSENSE\r\n\r\n":                  400,
			"GET / HTTP/1.1\r\n\r\n":            400, // no Host
			"GET / HTTP/9.9\r\nHost: a\r\n\r\n": 505,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n":               501,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n": 431,
		} {
			conn, err := s.p.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = conn.Write([]byte(request)) }()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%.30q: %v", request, err)
			}
			w := httptest.NewRecorder()
			w.Code, w.Body = resp.StatusCode, new(bytes.Buffer)
			w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
			_, _ = w.Body.ReadFrom(resp.Body)
			if w.Code != want {
				t.Errorf("%.30q: status %d, want %d", request, w.Code, want)
			}
			checkError(t, w)
			_ = conn.Close()
		}
	})
}
