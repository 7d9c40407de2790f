package server

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// note keeps a name and value for the request's line in the audit log.
func (x *exchange) note(name string, value any) {
	if x.s.cfg.Audit != nil {
		x.noted = append(x.noted, name, value)
	}
}

// audit writes to the audit log what an operator did or was not allowed to do.
func (s *Server) audit(x *exchange, r *http.Request, e *route, err error) {
	if s.cfg.Audit == nil || !s.byOperator(x, e) {
		return
	}
	c := access.Change{What: e.deed(), Token: x.token, From: remoteHost(r), Refused: x.refused}
	if err != nil {
		shown := wire.Shown(err)
		c.Code, c.Message = shown.Code, shown.Message
	}
	var about []any
	if e.ofQueue() {
		about = append(about, "queue", named(x.path.Queue(), engine.MaxQueueBytes))
	}
	if e.ofSchedule() {
		about = append(about, "schedule", named(x.path.Schedule(), engine.MaxQueueBytes))
	}
	if len(e.pattern) > 4 {
		about = append(about, "message", named(x.path.Key(), engine.MaxKeyBytes)) // or id
	}
	s.cfg.Audit.Change(&c, append(about, x.noted...)...)
}

// named returns a name from a request, clipped if it is longer than a valid one can be.
func named(name string, most int) string {
	if len(name) > most {
		return engine.Clip(name)
	}
	return name
}

// byOperator reports whether an operator made the request. That is so if only operators may
// make it, if its token may operate but not push, or if it changes a schedule.
func (s *Server) byOperator(x *exchange, e *route) bool {
	switch {
	case e.scope == access.Admin, e.ofSchedule() && !x.get:
		return s.cfg.Guard == nil || x.token != nil
	case e.scope&access.Operate == 0 || e.scope == access.Known || s.cfg.Guard != nil && x.token == nil:
		return false
	case e.scope == access.Operate:
		return true
	}
	return x.token != nil && x.token.Scopes&access.Push == 0
}

// deed returns one word for what a route does.
func (e *route) deed() string {
	last := e.pattern[len(e.pattern)-1]
	if e.ofSchedule() {
		return "schedule " + cmp.Or(scheduleDeeds[e.method], last)
	}
	switch e.method {
	case http.MethodDelete:
		return "cancel"
	case http.MethodPatch:
		return "reschedule"
	}
	return last
}

var scheduleDeeds = map[string]string{http.MethodPut: "set", http.MethodDelete: "rm"}

// noteCancelled notes how many messages were cancelled, in which queues, and in which queues
// that was forbidden.
func (x *exchange) noteCancelled(refs []engine.Ref, errs []error) {
	if x.s.cfg.Audit == nil {
		return
	}
	var queues []string
	n := 0
	for i, err := range errs {
		if err != nil {
			continue
		}
		if n++; !slices.Contains(queues, refs[i].Queue) && len(queues) < mostNoted {
			queues = append(queues, refs[i].Queue)
		}
	}
	x.note("queues", queues)
	x.note("count", n)
	var refused []string
	for i, err := range errs {
		if f, ok := err.(*wire.Error); ok && f.Code == "forbidden" && !slices.Contains(refused, refs[i].Queue) && len(refused) < mostNoted {
			refused = append(refused, refs[i].Queue)
		}
	}
	if refused != nil {
		x.note("forbidden", refused)
		x.refused = n == 0
	}
}

// mostNoted is the most queues or groups of one request that a line of the audit log names.
const mostNoted = 10
