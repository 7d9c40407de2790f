package server

import (
	"context"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
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
	query: wire.LiveQuery.Shape, answers: []success{{http.StatusOK, "Events, until the client goes.", nil}}, fails: []error{engine.ErrUnsupported},
	streams: true,
}

// watch streams events about queues as they change.
func (s *Server) watch(x *exchange, r *http.Request) error {
	q, err := wire.LiveQuery.ParseQuery(r.URL.RawQuery)
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

// viewer is a client of GET /v1/live. It keeps the versions it has sent, not events.
type viewer struct {
	s           *sampler
	x           *exchange
	queues      []string          // those watched by name, sorted
	sentVersion map[string]uint64 // by watched queue: the version sent
	all         bool              // it wants an overview
	whole       bool              // a new overview begins with the present state

	begun  bool
	cursor uint64    // the overview was sent up to this version
	target uint64    // up to this version it is sent without a pause
	listed time.Time // when a part of it was last sent
	totals string
	up     bool // whether the store was up, as last sent

	out  [][]byte // to be written; rows are shared with other viewers
	rows [][]byte // to be told in the next event
}

// run sends events until the client hangs up, the server stops or the token ends.
func (v *viewer) run(ctx context.Context, last string) {
	stop, w := stopping(ctx), http.NewResponseController(v.x.ResponseWriter)
	defer context.AfterFunc(stop, func() { _ = w.SetWriteDeadline(time.Now().Add(farewell)) })()
	wake := time.NewTimer(0)
	defer wake.Stop()
	beat := time.Now().Add(heartbeat)
	for {
		if err := v.x.recheck(access.Read, v.queues...); err != nil {
			v.event("end", map[string]string{"reason": err.Error()})
			_ = v.send()
			return
		}
		tick, next := v.news(last)
		if now := time.Now(); v.waits() {
			beat = now.Add(heartbeat)
		} else if !now.Before(beat) {
			v.say(":\n\n")
			beat = now.Add(heartbeat)
		}
		if v.send() != nil {
			return
		}
		if next.IsZero() || beat.Before(next) {
			next = beat
		}
		if by := time.Now().Add(tokenEvery); v.x.token != nil && by.Before(next) {
			next = by
		}
		wake.Reset(time.Until(next))
		select {
		case <-tick:
		case <-wake.C:
		case <-ctx.Done():
			return
		case <-stop.Done():
			v.event("end", map[string]string{"reason": "the server stops"})
			_ = v.send()
			return
		}
	}
}

// news collects what is new. It returns a channel that is closed when there is more, and a
// time to look again in any case; zero: none.
func (v *viewer) news(last string) (tick <-chan struct{}, next time.Time) {
	s := v.s
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.asked {
		return s.tick, next
	}
	if v.up != s.up {
		v.up = s.up
		v.event("store", map[string]bool{"up": v.up})
	}
	if !v.begun && (s.listed || !v.all) {
		v.begin(last)
	}
	for _, name := range v.queues {
		if q := s.rows[name]; q != nil && q.version > v.sentVersion[name] {
			v.sentVersion[name] = q.version
			v.rows = append(v.rows, q.json)
		}
	}
	if v.all && v.begun {
		if now := time.Now(); v.cursor < v.target || now.Sub(v.listed) >= overviewEvery {
			if v.overview() {
				v.listed = now
			}
		}
		switch {
		case v.cursor < v.target:
			next = v.listed // at once
		case v.cursor < s.version:
			next = v.listed.Add(overviewEvery)
		}
	}
	if len(v.rows) > 0 {
		v.say("id: ", s.epoch, "-", strconv.FormatUint(v.cursor, 10), "\nevent: queues\ndata: {\"queues\":[")
		for i, row := range v.rows {
			if i > 0 {
				v.out = append(v.out, comma)
			}
			v.out = append(v.out, row)
		}
		v.say("],\"viewers\":", strconv.Itoa(s.viewers), "}\n\n")
		v.rows = slices.Delete(v.rows, 0, len(v.rows))
	}
	return s.tick, next
}

// begin continues after the last event that the client has. If that is unknown, it sends the
// present state, or leaves the client to read it.
func (v *viewer) begin(last string) {
	s := v.s
	v.begun = true
	epoch, version, _ := strings.Cut(last, "-")
	cursor, err := strconv.ParseUint(version, 10, 64)
	resumed := err == nil && epoch == s.epoch && cursor >= s.floor && cursor <= s.version
	switch {
	case resumed:
		v.cursor = cursor
	case !v.whole:
		v.cursor = s.version
	}
	v.target = s.version
	v.event("begin", map[string]any{"resumed": resumed, "now": wire.Time{Time: time.Now()}, "viewers": s.viewers})
}

// overview adds a bounded number of changed queues, in order of change, and reports whether
// there were any.
func (v *viewer) overview() (some bool) {
	s := v.s
	i := sort.Search(len(s.order), func(i int) bool { return s.order[i].version > v.cursor })
	for n := 0; i < len(s.order) && n < wire.MaxLiveRows; i++ {
		q := s.order[i]
		v.cursor = q.version
		if _, watched := slices.BinarySearch(v.queues, q.queue); watched || v.x.token != nil && !v.x.token.May(access.Read, q.queue) {
			continue
		}
		v.rows = append(v.rows, q.json)
		some = true
		n++
	}
	if i == len(s.order) {
		v.cursor = s.version
	}
	if t := v.x.token; (t == nil || t.MayAll(access.Read)) && v.totals != string(s.totals) {
		v.totals = string(s.totals)
		v.say("event: totals\ndata: ", v.totals, "\n\n")
	}
	return some
}

func (v *viewer) say(text ...string) {
	for _, t := range text {
		v.out = append(v.out, []byte(t))
	}
}

func (v *viewer) event(name string, data any) {
	v.say("event: ", name, "\ndata: ", string(wire.AppendJSON(nil, data)), "\n\n")
}

// waits reports whether there is something to send.
func (v *viewer) waits() bool { return len(v.out) > 0 }

var comma = []byte{','}

// send writes and flushes all that waits.
func (v *viewer) send() error {
	if !v.waits() {
		return nil
	}
	for _, part := range v.out {
		if _, err := v.x.Write(part); err != nil {
			return err
		}
	}
	v.out = slices.Delete(v.out, 0, len(v.out)) // clears it, so that it holds no rows
	return http.NewResponseController(v.x.ResponseWriter).Flush()
}
