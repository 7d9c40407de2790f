package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// handler answers one request, or returns the error to answer with.
type handler func(x *exchange, r *http.Request) error

// route is a call of the API. net/http's mux would do but for a queue or key that is a
// slash and nothing else, and for the redirects and errors that it answers by itself.
type route struct {
	method  string
	pattern []string     // the segments of the path; "*" is any
	scope   access.Scope // one of these rights is needed, on the queues that the request is about
	handle  handler
}

func newRoute(method, path string, scope access.Scope, handle handler) route {
	return route{method, strings.Split(path[1:], "/"), scope, handle}
}

// routes is the table of contents of the API.
func (s *Server) routes() []route {
	return []route{
		newRoute("POST", "/v1/queues/*/messages", access.Push, s.pushOne),
		newRoute("POST", "/v1/messages", access.Push, s.pushMany),
		newRoute("PUT", "/v1/queues/*/keys/*", access.Push, s.rearm),

		newRoute("GET", "/v1/queues/*/messages/*", access.Read, s.get),
		newRoute("GET", "/v1/queues/*/keys/*", access.Read, s.get),
		newRoute("DELETE", "/v1/queues/*/messages/*", access.Push|access.Operate, s.cancel),
		newRoute("DELETE", "/v1/queues/*/keys/*", access.Push|access.Operate, s.cancel),
		newRoute("PATCH", "/v1/queues/*/messages/*", access.Push|access.Operate, s.reschedule),
		newRoute("PATCH", "/v1/queues/*/keys/*", access.Push|access.Operate, s.reschedule),
		newRoute("POST", "/v1/cancel", access.Push|access.Operate, s.cancelMany),

		newRoute("POST", "/v1/queues/*/messages/*/claim", access.Work, s.claim),
		newRoute("POST", "/v1/queues/*/keys/*/claim", access.Work, s.claim),
		newRoute("POST", "/v1/lease", access.Work, s.lease),
		newRoute("POST", "/v1/lease/end", access.Work, s.endLease),
		newRoute("POST", "/v1/settle", access.Work, s.settle),

		newRoute("GET", "/v1/queues", access.Read, s.queues),
		newRoute("GET", "/v1/queues/*", access.Read, s.queue),
		newRoute("GET", "/v1/queues/*/messages", access.Read, s.list),
		newRoute("GET", "/v1/queues/*/forecast", access.Read, s.forecast),
		newRoute("GET", "/v1/queues/*/settings", access.Read, s.settings),
		newRoute("PUT", "/v1/queues/*/settings", access.Operate, s.configure),

		newRoute("POST", "/v1/queues/*/pause", access.Operate, s.pause),
		newRoute("POST", "/v1/queues/*/resume", access.Operate, s.resume),
		newRoute("POST", "/v1/queues/*/purge", access.Operate, s.purge),
		newRoute("POST", "/v1/queues/*/redrive", access.Operate, s.redrive),

		newRoute("GET", "/v1/info", access.Known, s.info),
		newRoute("GET", "/healthz", access.Anyone, s.healthz),
		newRoute("GET", "/readyz", access.Anyone, s.readyz),
	}
}

// route answers a request by its method and path.
func (s *Server) route(x *exchange, r *http.Request) error {
	path, ok := wire.ParsePath(r.URL.EscapedPath())
	if !ok {
		return notFound(r).WithHint("a queue or key in a path is percent-encoded: / is %2F")
	}
	x.path = path
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range s.table {
		if e := &s.table[i]; e.method == method && x.path.Is(e.pattern) {
			err := s.allow(x, r, e)
			if err == nil {
				err = e.handle(x, r)
			}
			s.audit(x, r, e, err)
			return err
		}
	}
	allow := s.methods(&x.path)
	if allow == nil {
		return notFound(r)
	}
	allowed := strings.Join(allow, ", ")
	x.Header().Set("Allow", allowed)
	return refusal(http.StatusMethodNotAllowed, "invalid", engine.Clip(r.Method)+" is not allowed here", "allowed: "+allowed)
}

// methods are those that a path knows, sorted.
func (s *Server) methods(path *wire.Path) (all []string) {
	for i := range s.table {
		e := &s.table[i]
		if !path.Is(e.pattern) {
			continue
		}
		if all = append(all, e.method); e.method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return all
}

func notFound(r *http.Request) *wire.Error {
	return refusal(http.StatusNotFound, "not_found", "there is no "+engine.Clip(r.URL.EscapedPath()), "the paths of the API begin with /v1/")
}
