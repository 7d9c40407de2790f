package server

import (
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// allow refuses a request without a valid token, or with one that does not allow it. For
// queues named in a body the handler asks may for each.
func (s *Server) allow(x *exchange, r *http.Request, e *route) error {
	if s.cfg.Guard == nil || e.scope == access.Anyone {
		return nil
	}
	t, err := s.cfg.Guard.Who(r)
	if err != nil {
		s.cfg.Guard.Refused(r.Context(), r.RemoteAddr, err)
		return unauthorized(err)
	}
	x.token = t
	switch {
	case e.ofQueue():
		return x.may(e.scope, x.path.Queue())
	case e.pattern[0] != "v1" && e.scope != access.Known && !t.MayAll(e.scope):
		return x.forbidden(e.scope, "all queues")
	case !t.Has(e.scope):
		return x.forbidden(e.scope, "any queue")
	}
	return nil
}

// ofQueue reports whether the path names a queue.
func (e *route) ofQueue() bool { return len(e.pattern) > 2 && e.pattern[1] == "queues" }

// ofSchedule reports whether the path names a schedule.
func (e *route) ofSchedule() bool {
	return len(e.pattern) > 2 && e.pattern[1] == "schedules" && e.pattern[2] == "*"
}

// may returns the error to answer with unless the token has one of the rights on the queue.
func (x *exchange) may(wanted access.Scope, queue string) error {
	if x.token == nil || x.token.May(wanted, queue) {
		return nil
	}
	return x.forbidden(wanted, queue)
}

func (x *exchange) forbidden(wanted access.Scope, where string) *wire.Error {
	return refusal(http.StatusForbidden, "forbidden", "the token "+x.token.Name+" may not do this: it needs the scope "+
		either(wanted)+" on "+named(where, engine.MaxQueueBytes), "make one with tarry token create that has it")
}

func either(wanted access.Scope) string {
	names := wanted.Names()
	text := names[0]
	for _, n := range names[1:] {
		text += " or " + n
	}
	return text
}

// recheck checks the token of a request again after a wait. It returns the error to answer with
// if the token was revoked, has expired, or may not do so on one of the queues any more.
func (x *exchange) recheck(wanted access.Scope, queues ...string) error {
	if x.token == nil {
		return nil
	}
	now := x.s.cfg.Guard.Current(x.token)
	if now == nil {
		return unauthorized(&access.Failed{Reason: "the token " + x.token.Name + " was revoked or has expired"})
	}
	x.token = now
	for _, queue := range queues {
		if err := x.may(wanted, queue); err != nil {
			return err
		}
	}
	return nil
}

func unauthorized(err error) *wire.Error {
	f := refusal(http.StatusUnauthorized, "unauthorized", err.Error(), "")
	if why, ok := err.(*access.Failed); ok {
		f.Hint = why.Hint
	}
	return f
}
