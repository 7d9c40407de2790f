package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

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
