package server

import (
	"encoding/json"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

var callSettings = &call{
	id: "getSettings", group: groupQueue, does: "Get the settings of a queue",
	answers: ok("The settings. Those of a queue that was never configured are empty, with the revision 0.", wire.Configured.Ref()),
	fails:   []error{engine.ErrUnsupported},
}

var callConfigure = &call{
	id: "putSettings", group: groupQueue, does: "Store the settings of a queue",
	request: wire.Configuring.Shape, answers: ok("The settings, with their new revision.", wire.Configured.Ref()),
	fails:   []error{engine.ErrStale, engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"settings":{"max_attempts":5,"dead_keep":"7d","in_flight":10,"rate":100},"revision":"0"}`),
}

// settings answers with the settings of a queue.
func (s *Server) settings(x *exchange, r *http.Request) error {
	set, revision, err := s.c.Settings(r.Context(), x.path.Queue())
	if err != nil {
		return err
	}
	return respond(x, wire.Configured, &wire.Settings{Settings: set, Revision: revision})
}

// configure replaces all settings of a queue.
func (s *Server) configure(x *exchange, r *http.Request) error {
	set, err := decode(x, r, wire.Configuring)
	if err != nil {
		return err
	}
	set.Revision, err = s.c.Configure(r.Context(), x.path.Queue(), set.Settings, set.Revision)
	x.note("revision", set.Revision)
	if err != nil {
		return err
	}
	return respond(x, wire.Configured, &set)
}
