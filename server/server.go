package server

import (
	"context"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

// Server answers the HTTP API for one client. It is an http.Handler, to be mounted
// anywhere at the root, and may be used by many goroutines; Serve runs it on a
// listener with timeouts and a graceful end. The bounds on connections, on headers and
// on the time for writing are Serve's; all others hold wherever it is mounted.
type Server struct {
	c      *tarry.Client
	cfg    Config
	mux    *http.ServeMux
	hosts  *hosts
	budget budget
	pages  chan struct{} // has room for those who make a page of messages
	polls  polls
	waits  atomic.Int64 // lease requests that wait
}

// maxPages is how many pages of messages are made at a time. Each may need several
// times engine.AnswerBytes for a moment.
const maxPages = 8

// New returns a server for a client, which stays the caller's to close, after the
// server. cfg may be nil.
func New(c *tarry.Client, cfg *Config) *Server {
	s := newServer(c, cfg.withDefaults(c.MaxBody()))
	s.routes()
	return s
}

func newServer(c *tarry.Client, cfg Config) *Server {
	return &Server{
		c: c, cfg: cfg, mux: http.NewServeMux(), hosts: newHosts(cfg.Hosts),
		budget: budget{most: cfg.MaxBuffered}, pages: make(chan struct{}, maxPages),
	}
}

// handler answers one request, or returns the error to answer with.
type handler func(x *exchange, r *http.Request) error

// routes is the table of contents of the API.
func (s *Server) routes() {
	for _, route := range []struct {
		pattern string
		handle  handler
	}{
		{"POST /v1/queues/{queue}/messages", s.pushOne},
		{"POST /v1/messages", s.pushMany},
		{"PUT /v1/queues/{queue}/keys/{key}", s.rearm},

		{"GET /v1/queues/{queue}/messages/{id}", s.get},
		{"GET /v1/queues/{queue}/keys/{key}", s.get},
		{"DELETE /v1/queues/{queue}/messages/{id}", s.cancel},
		{"DELETE /v1/queues/{queue}/keys/{key}", s.cancel},
		{"PATCH /v1/queues/{queue}/messages/{id}", s.reschedule},
		{"PATCH /v1/queues/{queue}/keys/{key}", s.reschedule},
		{"POST /v1/cancel", s.cancelMany},

		{"POST /v1/queues/{queue}/messages/{id}/claim", s.claim},
		{"POST /v1/queues/{queue}/keys/{key}/claim", s.claim},
		{"POST /v1/lease", s.lease},
		{"POST /v1/lease/end", s.endLease},
		{"POST /v1/settle", s.settle},

		{"GET /v1/queues", s.queues},
		{"GET /v1/queues/{queue}", s.queue},
		{"GET /v1/queues/{queue}/messages", s.list},
		{"GET /v1/queues/{queue}/forecast", s.forecast},

		{"POST /v1/queues/{queue}/pause", s.pause},
		{"POST /v1/queues/{queue}/resume", s.resume},
		{"POST /v1/queues/{queue}/purge", s.purge},
		{"POST /v1/queues/{queue}/redrive", s.redrive},

		{"GET /v1/info", s.info},
		{"GET /healthz", s.healthz},
		{"GET /readyz", s.readyz},
		{"/", s.unknown},
	} {
		s.mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*exchange)
			if err := route.handle(x, r); err != nil {
				s.fail(x, r, err)
			}
		})
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.begin(w, r)
	defer x.end()
	defer s.recovered(x, r)
	if err := s.acceptable(r); err != nil {
		s.fail(x, r, err)
		return
	}
	s.mux.ServeHTTP(x, disguised(r))
}

// recovered answers for a handler that panicked.
func (s *Server) recovered(x *exchange, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Logger.Error("a request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	s.fail(x, r, refusal(http.StatusInternalServerError, "internal", "the server failed; its log says how", ""))
}

// acceptable refuses requests that are not for us, and those that the mux would
// answer in a shape of its own: it redirects paths that are not clean, which no path
// of ours ever is when queue and key are percent-encoded.
func (s *Server) acceptable(r *http.Request) error {
	if r.RequestURI == "*" || r.Method == http.MethodConnect {
		return wrong("this is no path of the API")
	}
	size := len(r.Method) + len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + 4
		}
	}
	if size > s.cfg.MaxHeader {
		return refusal(http.StatusRequestHeaderFieldsTooLarge, "too_large", "the request's line and headers are too large", "")
	}
	if err := s.hosts.admit(r); err != nil {
		return err
	}
	if !clean(r.URL.EscapedPath()) {
		return notFound(r).withHint("a queue or key in a path is percent-encoded: / is %2F")
	}
	return nil
}

// clean reports whether a path has no empty, . or .. segment, but for a slash at
// its end.
func clean(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		switch path[start:i] {
		case "":
			if i < len(path) {
				return false
			}
		case ".", "..":
			return false
		}
		start = i + 1
	}
	return true
}

func notFound(r *http.Request) *failure {
	return refusal(http.StatusNotFound, "not_found", "there is no "+clip(r.URL.EscapedPath()), "the paths of the API begin with /v1/")
}

var methods = []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut}

// unknown answers for a path that is not there, or not with this method.
func (s *Server) unknown(x *exchange, r *http.Request) error {
	allow := ""
	probe := r.Clone(r.Context())
	for _, m := range methods {
		probe.Method = m
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			if allow != "" {
				allow += ", "
			}
			allow += m
		}
	}
	if allow == "" {
		return notFound(r)
	}
	x.Header().Set("Allow", allow)
	return refusal(http.StatusMethodNotAllowed, "invalid", clip(r.Method)+" is not allowed here", "allowed: "+allow)
}

// healthz answers as long as the process does.
func (s *Server) healthz(x *exchange, _ *http.Request) error {
	return s.answer(x, `{"status":"ok"}`)
}

// readyTimeout bounds how long the engine may take to show that it is there.
const readyTimeout = 2 * time.Second

// readyz answers 200 while requests are welcome: the server is not shutting down,
// and the engine answers.
func (s *Server) readyz(x *exchange, r *http.Request) error {
	if stopping(r.Context()) != nil && stopping(r.Context()).Err() != nil {
		return refusal(http.StatusServiceUnavailable, "unavailable", "the server is shutting down", "")
	}
	if s.c.Capabilities().Count {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if _, err := s.c.Queue(ctx, "readyz"); err != nil {
			f := toFailure(err)
			return refusal(http.StatusServiceUnavailable, "unavailable", "the engine does not answer: "+f.message, f.hint)
		}
	}
	return s.answer(x, `{"status":"ready"}`)
}

func (s *Server) answer(x *exchange, json string) error {
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, json...)
	return s.send(x, a, http.StatusOK)
}

// send writes an answer that nobody needs to take back when it does not arrive. For
// what only looks there may be no room; what is done is answered in any case.
func (s *Server) send(x *exchange, a *answer, status int) error {
	if x.get {
		if err := x.hold(len(a.b)); err != nil {
			return err
		}
	}
	_ = a.write(x, status) // whoever asked is gone
	return nil
}
