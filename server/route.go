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

// route is a call of the API. net/http's mux would do, but it cannot take a queue or key named
// "/", and it answers some redirects and errors itself.
type route struct {
	method  string
	pattern []string     // the segments of the path; "*" matches any
	name    string       // the path with a name for each "*"
	scope   access.Scope // the request needs one of these rights on its queues
	handle  handler
	call    *call // nil: not part of the API but for monitoring
}

func newRoute(method, path string, scope access.Scope, handle handler, call *call) route {
	e := route{method: method, pattern: strings.Split(path[1:], "/"), scope: scope, handle: handle, call: call}
	e.name = e.template()
	return e
}

// routes lists all calls of the API.
func (s *Server) routes() []route {
	return []route{
		newRoute("POST", "/v1/queues/*/messages", access.Push, s.pushOne, callPush),
		newRoute("POST", "/v1/messages", access.Push, s.pushMany, callPushMany),
		newRoute("PUT", "/v1/queues/*/keys/*", access.Push, s.rearm, callRearm),
		newRoute("GET", "/v1/messages", access.Read, s.find, callFind),

		newRoute("GET", "/v1/queues/*/messages/*", access.Read, s.get, callGet),
		newRoute("GET", "/v1/queues/*/keys/*", access.Read, s.get, callGet),
		newRoute("DELETE", "/v1/queues/*/messages/*", access.Push|access.Operate, s.cancel, callCancel),
		newRoute("DELETE", "/v1/queues/*/keys/*", access.Push|access.Operate, s.cancel, callCancel),
		newRoute("PATCH", "/v1/queues/*/messages/*", access.Push|access.Operate, s.reschedule, callReschedule),
		newRoute("PATCH", "/v1/queues/*/keys/*", access.Push|access.Operate, s.reschedule, callReschedule),
		newRoute("POST", "/v1/cancel", access.Push|access.Operate, s.cancelMany, callCancelMany),

		newRoute("POST", "/v1/queues/*/messages/*/claim", access.Work, s.claim, callClaim),
		newRoute("POST", "/v1/queues/*/keys/*/claim", access.Work, s.claim, callClaim),
		newRoute("POST", "/v1/lease", access.Work, s.lease, callLease),
		newRoute("POST", "/v1/lease/end", access.Work, s.endLease, callEndLease),
		newRoute("POST", "/v1/settle", access.Work, s.settle, callSettle),

		newRoute("GET", "/v1/queues", access.Read, s.queues, callQueues),
		newRoute("GET", "/v1/queues/*", access.Read, s.queue, callQueue),
		newRoute("GET", "/v1/queues/*/messages", access.Read, s.list, callList),
		newRoute("GET", "/v1/queues/*/forecast", access.Read, s.forecast, callForecast),
		newRoute("GET", "/v1/queues/*/trend", access.Read, s.trend, callTrend),
		newRoute("GET", "/v1/trends", access.Read, s.trends, callTrends),
		newRoute("GET", "/v1/forecast", access.Read, s.forecasts, callForecasts),
		newRoute("GET", "/v1/live", access.Read, s.watch, callLive),
		newRoute("GET", "/v1/queues/*/dead/groups", access.Read, s.deadGroups, callDeadGroups),
		newRoute("GET", "/v1/queues/*/settings", access.Read, s.settings, callSettings),
		newRoute("PUT", "/v1/queues/*/settings", access.Operate, s.configure, callConfigure),

		newRoute("POST", "/v1/queues/*/pause", access.Operate, s.pause, callPause),
		newRoute("POST", "/v1/queues/*/resume", access.Operate, s.resume, callResume),
		newRoute("POST", "/v1/queues/*/purge", access.Operate, s.purge, callPurge),
		newRoute("POST", "/v1/queues/*/redrive", access.Operate, s.redrive, callRedrive),
		newRoute("POST", "/v1/queues/*/drop", access.Operate, s.drop, callDrop),

		newRoute("GET", "/v1/schedules", access.Read, s.listSchedules, callSchedules),
		newRoute("GET", "/v1/schedules/*", access.Read, s.schedule, callSchedule),
		newRoute("PUT", "/v1/schedules/*", access.Push, s.setSchedule, callSetSchedule),
		newRoute("DELETE", "/v1/schedules/*", access.Push, s.removeSchedule, callRemoveSchedule),
		newRoute("POST", "/v1/schedules/*/pause", access.Push|access.Operate, operateSchedule(s, s.c.PauseSchedule, wire.StoredSchedule, shownSchedule), callPauseSchedule),
		newRoute("POST", "/v1/schedules/*/resume", access.Push|access.Operate, operateSchedule(s, s.c.ResumeSchedule, wire.StoredSchedule, shownSchedule), callResumeSchedule),
		newRoute("POST", "/v1/schedules/*/trigger", access.Push|access.Operate, operateSchedule(s, s.c.TriggerSchedule, wire.ScheduleRun, shownRun), callTriggerSchedule),
		newRoute("GET", "/v1/schedules/*/next", access.Read, s.scheduleNext, callScheduleNext),
		newRoute("POST", "/v1/schedules/preview", access.Known, s.previewSchedule, callPreviewSchedule),

		newRoute("POST", "/v1/backup", access.Admin, s.backup, callBackup),

		newRoute("GET", "/v1/problems", access.Read, s.problems, callProblems),
		newRoute("GET", "/v1/workers", access.Read, s.listWorkers, callWorkers),
		newRoute("GET", "/v1/intakes", access.Read, s.listIntakes, callIntakes),
		newRoute("GET", "/v1/info", access.Known, s.info, callInfo),
		newRoute("GET", "/v1/me", access.Known, s.me, callMe),
		newRoute("GET", "/healthz", access.Anyone, s.healthz, callHealthz),
		newRoute("GET", "/readyz", access.Anyone, s.readyz, callReadyz),
		newRoute("GET", "/openapi.json", access.Known, s.openapi, callOpenAPI),
		newRoute("GET", "/metrics", access.Read, s.metrics, nil),
	}
}

// route answers a request by its method and path.
func (s *Server) route(x *exchange, r *http.Request) error {
	path, ok := wire.ParsePath(r.URL.EscapedPath())
	if !ok {
		return notFound(r).WithHint(slashHint)
	}
	x.path = path
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range s.table {
		if e := &s.table[i]; e.method == method && x.path.Is(e.pattern) {
			x.route = e
			return s.call(x, r, e)
		}
	}
	allow := s.methods(&x.path)
	if allow == nil {
		err := notFound(r)
		if x.path.BelowName() { // a name with an unescaped slash makes extra segments
			err.Hint = slashHint
		}
		return err
	}
	allowed := strings.Join(allow, ", ")
	x.Header().Set("Allow", allowed)
	return refusal(http.StatusMethodNotAllowed, "invalid", engine.Clip(r.Method)+" is not allowed here", "allowed: "+allowed)
}

// call answers a request by its route.
func (s *Server) call(x *exchange, r *http.Request, e *route) (err error) {
	err = s.allow(x, r, e)
	defer func() { s.audit(x, r, e, err) }()
	if err == nil && x.get && e.call != nil && e.call.query == nil && e.scope != access.Anyone { // probes may add parameters
		_, err = wire.None.ParseQuery(r.URL.RawQuery)
	}
	if err != nil {
		return err
	}
	err = errPanicked // unless handle returns
	err = e.handle(x, r)
	if !x.get && e.ofQueue() {
		s.live.touch(x.path.Queue())
	}
	return err
}

// methods returns the methods that a path allows, sorted.
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

const slashHint = "a queue, key or schedule in a path is percent-encoded: / is %2F"

func notFound(r *http.Request) *wire.Error {
	hint := "the paths of the API begin with /v1/"
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		hint = "a queue is at /v1/queues/{queue}, its messages at /v1/queues/{queue}/messages; GET /openapi.json tells all paths"
	}
	return refusal(http.StatusNotFound, "not_found", "there is no "+engine.Clip(r.URL.EscapedPath()), hint)
}
