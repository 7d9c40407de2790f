package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

var callHealthz = &call{
	id: "getHealth", group: groupServer, does: "Tell whether the server lives",
	answers: ok("It lives.", wire.Health.Ref()),
}

var callReadyz = &call{
	id: "getReadiness", group: groupServer, does: "Tell whether requests are welcome, or why not",
	answers: ok("They are.", wire.Health.Ref()), fails: []error{engine.ErrNoSpace},
}

// healthz answers as long as the process does.
func (s *Server) healthz(x *exchange, _ *http.Request) error {
	return s.answer(x, appendHealthy)
}

func appendHealthy(b []byte) []byte { return append(b, `{"status":"ok"}`...) }

// readyTimeout bounds how long the engine may take to show that it is there.
const readyTimeout = 2 * time.Second

// readyz answers 200 while requests are welcome: the server is not shutting down, and the
// engine answers and takes messages. Else it says why not, and what to do: 507 when it is
// the disk that is full, so that only pushes fail, 503 when nothing would succeed.
func (s *Server) readyz(x *exchange, r *http.Request) error {
	if stop := stopping(r.Context()); stop != nil && stop.Err() != nil {
		return errStopping()
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := s.c.Ready(ctx)
	switch {
	case err == nil:
		return s.answer(x, func(b []byte) []byte { return append(b, `{"status":"ready"}`...) })
	case errors.Is(err, engine.ErrNoSpace):
		return refusal(http.StatusInsufficientStorage, engine.Code(err), "pushes fail: "+engine.ErrNoSpace.Error(), wire.Shown(err).Hint)
	case ctx.Err() != nil:
		return refusal(http.StatusServiceUnavailable, "unavailable", "the engine has not answered for "+readyTimeout.String(),
			"see to what is behind the engine "+s.c.Capabilities().Name+": its disk, its server, the network in between")
	}
	if s.cfg.Guard != nil {
		if _, unknown := s.cfg.Guard.Who(r); unknown != nil { // it may name hosts, users and databases
			s.cfg.Logger.Error("the engine does not work", "error", err)
			return refusal(http.StatusServiceUnavailable, "unavailable", "the engine does not work", "the server's log says why, and so does this to who has a token")
		}
	}
	f := wire.Shown(err)
	if f.Hint == "" {
		f.Hint = "see to what is behind the engine " + s.c.Capabilities().Name + ", and to the server's log"
	}
	return refusal(http.StatusServiceUnavailable, "unavailable", "the engine does not work: "+f.Message, f.Hint)
}

func errStopping() *wire.Error {
	return refusal(http.StatusServiceUnavailable, "unavailable", "the server is shutting down", "ask another, or this one when it has been started again")
}
