package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// How often a viewer is written to.
const (
	heartbeat     = 15 * time.Second // a comment is sent when there is nothing else to send
	overviewEvery = time.Second
	tokenEvery    = time.Second     // how often the token is checked at least
	retryIn       = 2 * time.Second // how soon a browser reconnects
	farewell      = time.Second     // how long a client has to read that the server stops
)

var callLive = &call{
	id: "watch", group: groupQueue, does: "Be told of queues as they change, by server-sent events",
	more:  "See docs/http.md for the events.",
	query: wire.LiveParameters, answers: []success{{http.StatusOK, "Events, until the client goes.", nil}}, fails: []error{engine.ErrUnsupported},
	streams: true,
}

// watch streams events about queues as they change.
func (s *Server) watch(x *exchange, r *http.Request) error {
	q, err := wire.ParseLiveQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if !s.c.Capabilities().Count {
		return refusal(http.StatusNotImplemented, "unsupported", "the engine cannot tell what queues hold", "")
	}
	slices.Sort(q.Queues)
	q.Queues = slices.Compact(q.Queues)
	for _, name := range q.Queues {
		if err := x.may(access.Read, name); err != nil {
			return err
		}
	}
	v := &viewer{s: s.live, x: x, queues: q.Queues, sentVersion: make(map[string]uint64), all: q.Overview != wire.OverviewNone, whole: q.Overview == wire.OverviewAll, up: true}
	if err := s.live.join(v.queues, v.all); err != nil {
		return err
	}
	defer s.live.leave(v.queues, v.all)
	h := x.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // makes proxies pass each event on at once
	x.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		v.say("retry: ", strconv.FormatInt(retryIn.Milliseconds(), 10), "\n\n")
		v.run(r.Context(), r.Header.Get("Last-Event-ID"))
	}
	return nil
}
