package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/tarryhq/tarry/internal/wire"
)

// polls are the waiting lease requests that have a name. By that name a client ends one
// without hanging up, so that it knows for certain what was leased.
type polls struct{ named sync.Map } // of context.CancelFunc

// add notes a poll that begins; false: one with that name is waiting already.
func (p *polls) add(name string, end context.CancelFunc) bool {
	_, waits := p.named.LoadOrStore(name, end)
	return !waits
}

func (p *polls) remove(name string) { p.named.Delete(name) }

// end ends the poll with this name, and reports whether there was one.
func (p *polls) end(name string) bool {
	end, ok := p.named.Load(name)
	if ok {
		end.(context.CancelFunc)()
	}
	return ok
}

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
	if s.polls.end(x.own(name)) {
		n = 1
	}
	return s.counted(x, n, nil)
}
