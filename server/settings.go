package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

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

// operateFails are the errors of calls that operate a queue.
var operateFails = []error{engine.ErrNoSpace, engine.ErrUnsupported}

var callPause = &call{
	id: "pauseQueue", group: groupQueue, does: "Stop leasing and claiming of a queue",
	request: wire.Pausing.Shape, answers: ok("It is paused.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{"for":"10m"}`),
}

// pause stops the leasing of a queue: for the time asked, or until it is resumed.
func (s *Server) pause(x *exchange, r *http.Request) error {
	d, err := decode(x, r, wire.Pausing)
	if err == nil {
		err = s.c.Pause(r.Context(), x.path.Queue(), d)
	}
	return s.counted(x, 1, err)
}

var callResume = &call{
	id: "resumeQueue", group: groupQueue, does: "Go on with a queue that was paused",
	request: wire.None.Shape, answers: ok("It goes on.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{}`),
}

func (s *Server) resume(x *exchange, r *http.Request) error {
	_, err := decode(x, r, wire.None)
	if err == nil {
		err = s.c.Resume(r.Context(), x.path.Queue())
	}
	return s.counted(x, 1, err)
}

var callPurge = &call{
	id: "purgeQueue", group: groupQueue, does: "Remove what is scheduled and ready in a queue",
	more:    "When it fails midway the header " + wire.CountHeader + " tells how many are gone.",
	request: wire.Purging.Shape, answers: ok("How many are gone.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{"dead":true}`),
}

func (s *Server) purge(x *exchange, r *http.Request) error {
	also, err := decode(x, r, wire.Purging)
	if err != nil {
		return err
	}
	n, err := s.c.Purge(r.Context(), x.path.Queue(), also)
	return s.counted(x, n, x.midway(n, err, "%d messages are gone already; purge again for the rest"))
}

// midway returns the error of a request that failed after it had changed n messages. Its hint
// and a header say how many.
func (x *exchange) midway(n int64, err error, hint string) error {
	if err == nil || n == 0 {
		return err
	}
	f := *wire.Shown(err)
	f.Hint = fmt.Sprintf(hint, n)
	x.Header().Set(wire.CountHeader, strconv.FormatInt(n, 10))
	return &f
}
