package server

import (
	"context"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// Server answers the HTTP API for one client. It is an http.Handler to be mounted at the root,
// and may be used by many goroutines. Serve runs it on a listener with timeouts and a graceful
// end. Only Serve bounds connections, the number of headers, and the times to send headers, to
// read answers and to rest. All other bounds hold wherever the Server is mounted.
type Server struct {
	c            *tarry.Client
	cfg          Config
	table        []route
	hosts        *hosts
	budget       budget
	pages        turns         // bounds pages of messages or trends under way
	searches     turns         // bounds searches under way
	groups       turns         // bounds groupings of dead messages under way
	sweeps       chan struct{} // holds a token for each sweep of dead messages under way
	polls        sync.Map      // of context.CancelFunc: lease requests that wait and have a name, which ends them
	sets         sets
	waits        atomic.Int64 // lease requests that wait
	live         *sampler
	failureLines failures
	problemScan  shared[[]Problem]
	lastRuns     *lastRuns
	scans        chan struct{} // holds a token for the scan of one request that is under way
	ahead        shared[nextHour]
	workers      *workers
	workerScan   shared[foundWorkers]

	document func() []byte // returns the OpenAPI document, made at its first use
}

// maxPages is how many pages of messages or trends are made at a time. Each may need several
// times engine.AnswerBytes.
const maxPages = 8

// maxSearches is how many searches are made at a time. They have turns of their own, since
// each may take a second.
const maxSearches = 4

// New returns a server for a client. The caller closes the client, after the server. cfg may
// be nil.
func New(c *tarry.Client, cfg *Config) *Server {
	s := &Server{c: c, cfg: cfg.withDefaults(c.MaxBody()), failureLines: newFailures(), pages: make(turns, maxPages), searches: make(turns, maxSearches), groups: make(turns, maxLooks), scans: make(chan struct{}, 1), sweeps: make(chan struct{}, maxSweeps)}
	s.table, s.hosts, s.budget.most, s.sets.most = s.routes(), newHosts(s.cfg.Hosts), s.cfg.MaxBuffered, s.cfg.MaxSetQueues
	s.sets.budget = &s.budget
	s.live = newSampler(c, s.cfg.Trends, s.cfg.MaxViewers)
	s.problemScan.scan = func(ctx context.Context) ([]Problem, error) { return s.scan(ctx, LateAfter) }
	s.ahead.scan, s.ahead.rest = s.scanAhead, aheadRest
	s.lastRuns = newLastRuns()
	s.workers, s.workerScan.scan, s.workerScan.rest = newWorkers(), s.scanWorkers, workersRest
	s.document = sync.OnceValue(func() []byte { return describe(s.table, s.cfg.Version) })
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.begin(w, r)
	defer x.end()
	if s.cfg.Answered != nil {
		defer x.answered(r.Method)
	}
	defer s.recovered(x, r)
	h := x.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, nosniff
	err := s.acceptable(x, r)
	if err == nil {
		err = s.route(x, r)
	}
	if err != nil && !x.failed {
		s.fail(x, r, err)
	}
}

// The header values of all answers, shared to save allocations.
var (
	noStore = []string{"no-store"}
	nosniff = []string{"nosniff"}
)

// recovered answers for a handler that panicked.
func (s *Server) recovered(x *exchange, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Logger.Error("a request panicked", logged(r, "panic", p, "stack", string(debug.Stack()))...)
	s.fail(x, r, errPanicked)
}

// errPanicked answers for a handler that panicked.
var errPanicked error = refusal(http.StatusInternalServerError, "internal", "the server failed; its log says how", "")

// acceptable refuses requests for another host, requests that are too large, and those for
// which there is no memory.
func (s *Server) acceptable(x *exchange, r *http.Request) error {
	if r.RequestURI == "*" || r.Method == http.MethodConnect {
		return wire.Wrong("this is no path of the API")
	}
	size, cost := len(r.Method)+len(r.RequestURI), exchangeCost
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + 4
			cost += headerCost
		}
	}
	if size > maxHeader {
		return refusal(http.StatusRequestHeaderFieldsTooLarge, "too_large", "the request's line and headers are too large", "")
	}
	if err := x.take(int64(cost + size)); err != nil {
		return err
	}
	return s.hosts.admit(r)
}

// metrics answers by Config.Metrics.
func (s *Server) metrics(x *exchange, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return notFound(r)
	}
	s.cfg.Metrics.ServeHTTP(x, r)
	return nil
}
