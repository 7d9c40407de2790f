package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// query reads the parameters of a path, of which only those named may be there, and
// each once.
func query(r *http.Request, names ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, wrong("the query is malformed: %v", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(names, name):
			return nil, wrong("%s: no such parameter", clip(name))
		case len(values) > 1:
			return nil, wrong("%s: given twice", name)
		}
	}
	return q, nil
}

const maxPage = 1000

// limit reads how long a page may be; 0 when nothing is said.
func limit(q url.Values) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPage {
		return 0, wrong("limit: must be a whole number from 1 to %d, not %s", maxPage, clip(s))
	}
	return n, nil
}

func (s *Server) queues(x *exchange, r *http.Request) error {
	q, err := query(r, "after", "limit")
	if err != nil {
		return err
	}
	n, err := limit(q)
	if err != nil {
		return err
	}
	all, next, err := s.c.Queues(r.Context(), q.Get("after"), n)
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"queues":[`...)
	for i := range all {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = appendQueue(a.b, &all[i])
	}
	a.b = append(a.b, `],"next":`...)
	a.b = appendString(a.b, next)
	a.b = append(a.b, '}')
	return s.send(x, a, http.StatusOK)
}

func (s *Server) queue(x *exchange, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	info, err := s.c.Queue(r.Context(), value(r, "queue"))
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = appendQueue(a.b, &info)
	return s.send(x, a, http.StatusOK)
}

func appendQueue(b []byte, q *engine.QueueInfo) []byte {
	b = append(b, `{"queue":`...)
	b = appendString(b, q.Queue)
	for _, n := range [...]struct {
		name  string
		count int64
	}{{"scheduled", q.Scheduled}, {"ready", q.Ready}, {"leased", q.Leased}, {"dead", q.Dead}} {
		b = append(b, `,"`...)
		b = append(b, n.name...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, n.count, 10)
	}
	b = append(b, `,"next_due":`...)
	b = appendTime(b, q.NextDue)
	b = append(b, `,"oldest_ready":`...)
	b = appendTime(b, q.OldestReady)
	b = append(b, `,"paused":`...)
	b = strconv.AppendBool(b, q.Paused)
	if !q.PausedUntil.IsZero() {
		b = append(b, `,"paused_until":`...)
		b = appendTime(b, q.PausedUntil)
	}
	return append(b, '}')
}

// listed is the order in which a list without a state goes through the states.
var listed = []engine.State{engine.Ready, engine.Leased, engine.Scheduled, engine.Dead}

func (s *Server) list(x *exchange, r *http.Request) error {
	q, err := query(r, "state", "after", "limit", "body")
	if err != nil {
		return err
	}
	lq := engine.ListQuery{Queue: value(r, "queue"), After: q.Get("after")}
	if lq.Limit, err = limit(q); err != nil {
		return err
	}
	how := noBodies
	switch b := q.Get("body"); b {
	case "", "false":
	case "true":
		lq.Body, how = true, wantBodies(r)
	default:
		return wrong("body: must be true or false, not %s", clip(b))
	}
	if name := q.Get("state"); name != "" {
		if lq.State, err = engine.ParseState(name); err != nil || lq.State == engine.Gone {
			return wrong("state: must be scheduled, ready, leased or dead, not %s", clip(name))
		}
	}
	a := newAnswer()
	defer a.free()
	if err := s.page(r, a, lq, how); err != nil {
		return err
	}
	return s.send(x, a, http.StatusOK)
}

// page writes a page of messages of one state, or of all when none is given. It
// waits for its turn.
func (s *Server) page(r *http.Request, a *answer, lq engine.ListQuery, how bodies) (err error) {
	select {
	case s.pages <- struct{}{}:
		defer func() { <-s.pages }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	var page engine.Page
	if lq.State == engine.Gone {
		page, err = s.listAll(r, lq)
	} else {
		page, err = s.c.ListPage(r.Context(), lq)
	}
	if err != nil {
		return err
	}
	a.b = append(a.b, `{"messages":[`...)
	for i := range page.Messages {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = appendMessage(a.b, &page.Messages[i], "", how)
	}
	a.b = append(a.b, `],"next":`...)
	a.b = appendString(a.b, page.Next)
	a.b = append(a.b, '}')
	return nil
}

// listAll lists one state after another. Its cursor is the state and, behind a
// colon, the cursor within it.
func (s *Server) listAll(r *http.Request, q engine.ListQuery) (engine.Page, error) {
	at := 0
	if q.After != "" {
		name, after, ok := strings.Cut(q.After, ":")
		state, err := engine.ParseState(name)
		if at = slices.Index(listed, state); !ok || err != nil || at < 0 {
			return engine.Page{}, wrong("after: is not the next of a page before")
		}
		q.After = after
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	var all engine.Page
	for ; at < len(listed); at++ {
		q.State = listed[at]
		p, err := s.c.ListPage(r.Context(), q)
		if err != nil {
			return engine.Page{}, err
		}
		all.Messages = append(all.Messages, p.Messages...)
		if q.Limit -= len(p.Messages); p.Next != "" {
			all.Next = q.State.String() + ":" + p.Next
			return all, nil
		}
		q.After = ""
		if q.Limit == 0 {
			if at+1 < len(listed) {
				all.Next = listed[at+1].String() + ":"
			}
			return all, nil
		}
	}
	return all, nil
}

// The steps and span of a forecast unless told otherwise.
const (
	defaultStep = time.Minute
	defaultSpan = time.Hour
)

func (s *Server) forecast(x *exchange, r *http.Request) error {
	q, err := query(r, "step", "span")
	if err != nil {
		return err
	}
	step, span := defaultStep, defaultSpan
	for _, p := range []struct {
		name string
		d    *time.Duration
	}{{"step", &step}, {"span", &span}} {
		if v := q.Get(p.name); v != "" {
			if *p.d, err = tarry.ParseDuration(v); err != nil {
				return wrong("%s: %q is not a duration", p.name, clip(v)).withHint(durationHint)
			}
		}
	}
	buckets, err := s.c.Forecast(r.Context(), value(r, "queue"), step, span)
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"step":`...)
	a.b = appendDuration(a.b, step)
	a.b = append(a.b, `,"buckets":[`...)
	for i, b := range buckets {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = append(a.b, `{"from":`...)
		a.b = appendTime(a.b, b.From)
		a.b = append(a.b, `,"count":`...)
		a.b = strconv.AppendInt(a.b, b.Count, 10)
		a.b = append(a.b, '}')
	}
	a.b = append(a.b, "]}"...)
	return s.send(x, a, http.StatusOK)
}
