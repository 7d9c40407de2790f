package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tarryhq/tarry/internal/wire"
)

// own returns a client's name for a poll, made distinct from those of other tokens.
func (x *exchange) own(name string) string {
	if x.token == nil {
		return name
	}
	return x.token.ID + " " + name
}

var callEndLease = &call{
	id: "endLease", group: groupWork, does: "End a lease request that waits",
	more:    "It is answered at once, with what it has.",
	request: wire.PollEnding.Shape, answers: ok("How many waits were ended: 0 or 1.", wire.Counted.Ref()),
	example: json.RawMessage(`{"poll":"worker-1-request-7"}`),
}

// endLease ends a lease request that waits.
func (s *Server) endLease(x *exchange, r *http.Request) error {
	name, err := decode(x, r, wire.PollEnding)
	if err != nil {
		return err
	}
	n := int64(0)
	if end, waits := s.polls.Load(x.own(name)); waits {
		end.(context.CancelFunc)()
		n = 1
	}
	return s.counted(x, n, nil)
}
