// Package remote serves the messages of a tarrytest.Client over HTTP, as tarry serve does, for
// tests of code that opens a tarry server. It is a package of its own, so that other tests need
// not link a server.
package remote

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/tarrytest"
)

// Server is a tarry server on a free port of the loopback interface. Its messages, and so
// what RequirePushed and Advance do, are those of its Client. It is for tests outside of
// testing/synctest bubbles, in which real connections cannot wait.
type Server struct {
	URL string // for tarry.Open

	api  http.Handler
	open context.Context // ends with the test

	mu     sync.Mutex
	faults []http.HandlerFunc // each answers a request instead of the server
}

// New returns a server that is closed when the test ends.
func New(t testing.TB, c *tarrytest.Client) *Server {
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	open, end := context.WithCancel(context.Background())
	s := &Server{api: server.New(c.Client, &server.Config{Logger: logger}), open: open}
	ln := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = ln.URL
	t.Cleanup(func() {
		end()
		ln.CloseClientConnections()
		ln.Close()
	})
	return s
}

// Fail has the next n requests answered with an HTTP status, such as 503, as a gateway may do.
// All requests count, those of waiting workers too. For errors of the server itself, such as
// tarry.ErrNoSpace, use tarrytest's Client.Fail.
func (s *Server) Fail(n, status int) {
	s.next(n, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, http.StatusText(status), status) })
}

// Hang leaves the next n requests without an answer, until their clients give up, the test ends
// or release is called, which breaks their connections. Closing a client waits for its requests:
// release them first.
func (s *Server) Hang(n int) (release func()) {
	ctx, release := context.WithCancel(s.open)
	s.next(n, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
		panic(http.ErrAbortHandler)
	})
	return release
}

func (s *Server) next(n int, fault http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.faults = append(s.faults, fault)
	}
}

// serve answers a request, or leaves it to the next fault.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	answer := s.api.ServeHTTP
	s.mu.Lock()
	if len(s.faults) > 0 {
		answer, s.faults = s.faults[0], s.faults[1:]
	}
	s.mu.Unlock()
	answer(w, r)
}
