package wire

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/schema"
)

// The parameters of queries.
var (
	NoParameters   = parameters()
	ListParameters = parameters(
		parameter("state", isStanding, "of this one alone; without it: ready, leased, scheduled, dead, one after another"),
		parameter("from", isTime, "whose time is this or later: due of scheduled and ready ones, the lease's end of leased ones, death of dead ones"),
		parameter("to", isTime, "whose time is earlier"),
		parameter("order", schema.Words("asc", "desc").With("default", "asc"), "by that time"),
		parameter("after", isText, "the next of the page before, of the same state, bounds and order"),
		parameter("limit", isLimit, "messages at most"),
		parameter("body", isFlag.With("default", false), "with bodies"))
	RefParameters = parameters(
		parameter("if_state", isStanding, "only if the message is in this state; else stale"))
	PageParameters = parameters(
		parameter("after", isText, "the next of the page before"),
		parameter("limit", isLimit, "queues at most"))
	ForecastParameters = parameters(
		parameter("step", isDuration.With("default", duration.Format(DefaultStep)), "whole minutes"),
		parameter("span", isDuration.With("default", duration.Format(DefaultSpan)), "how far to look"))

	isLimit = schema.Whole(1, engine.MaxPage).With("default", 100)
)

// Query reads the parameters of a path. It fails for a parameter that the Shape does not
// have, and for one that is given twice.
func Query(raw string, s *Shape) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, Wrong("the query is malformed: %v", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(s.names, name):
			return nil, Wrong("%s: no such parameter", engine.Clip(name))
		case len(values) > 1:
			return nil, Wrong("%s: given twice", name)
		}
	}
	return q, nil
}

// limit reads the longest length of a page; 0: not given.
func limit(q url.Values) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > engine.MaxPage {
		return 0, Wrong("limit: must be a whole number from 1 to %d, not %s", engine.MaxPage, engine.Clip(s))
	}
	return n, nil
}

// page returns the parameters for the next page of a list.
func page(after string, limit int) url.Values {
	v := make(url.Values)
	if after != "" {
		v.Set("after", after)
	}
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	return v
}

// ListQuery returns the query of a list.
func ListQuery(q *engine.ListQuery) string {
	v := page(q.After, q.Limit)
	if q.State != engine.Gone {
		v.Set("state", q.State.String())
	}
	if q.Body {
		v.Set("body", "true")
	}
	if !q.From.IsZero() {
		v.Set("from", formatInstant(q.From))
	}
	if !q.To.IsZero() {
		v.Set("to", formatInstant(q.To))
	}
	if q.Newest {
		v.Set("order", "desc")
	}
	return v.Encode()
}

// ParseListQuery reads the query of a list of a queue. If they are not given, State is Gone
// and Limit is 0.
func ParseListQuery(queue, raw string) (engine.ListQuery, error) {
	l := engine.ListQuery{Queue: queue}
	q, err := Query(raw, ListParameters)
	if err != nil {
		return l, err
	}
	l.After = q.Get("after")
	if l.Limit, err = limit(q); err != nil {
		return l, err
	}
	switch b := q.Get("body"); b {
	case "", "false":
	case "true":
		l.Body = true
	default:
		return l, Wrong("body: must be true or false, not %s", engine.Clip(b))
	}
	switch o := q.Get("order"); o {
	case "", "asc":
	case "desc":
		l.Newest = true
	default:
		return l, Wrong("order: must be asc or desc, not %s", engine.Clip(o))
	}
	if l.From, err = instant(q, "from"); err != nil {
		return l, err
	}
	if l.To, err = instant(q, "to"); err != nil {
		return l, err
	}
	s := q.Get("state")
	if s == engine.Finished.String() {
		return l, Wrong("state: finished messages cannot be listed, but looked up by their keys")
	}
	if s != "" {
		l.State, err = state("state", s)
	}
	return l, err
}

// state reads the state of a live or dead message.
func state(name, s string) (engine.State, error) {
	state, err := engine.ParseState(s)
	if err != nil || !state.Live() && state != engine.Dead {
		return engine.Gone, Wrong("%s: must be scheduled, ready, leased or dead, not %q", name, engine.Clip(s))
	}
	return state, nil
}

// instant reads a time; zero: not given.
func instant(q url.Values, name string) (time.Time, error) {
	s := q.Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, Wrong("%s: %q is not a time", name, engine.Clip(s)).WithHint("a time is in RFC 3339, such as 2030-01-31T23:59:59.999Z; in a query + is written %2B")
	}
	return t.UTC(), nil
}

// formatInstant writes a time with all its digits. A time outside the range of RFC 3339
// becomes the first or last instant of the range; no message has a time beyond these.
func formatInstant(t time.Time) string {
	t = t.UTC()
	switch year := t.Year(); {
	case year < 0:
		t = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case year > engine.MaxYear:
		t = lastTime.Add(time.Millisecond - 1)
	}
	return t.Format(time.RFC3339Nano)
}

// RefQuery returns the query of a request about one message.
func RefQuery(ref engine.Ref) string {
	if ref.IfState == engine.Gone {
		return ""
	}
	return url.Values{"if_state": {ref.IfState.String()}}.Encode()
}

// ParseRefQuery reads the state that a message must be in; Gone: any.
func ParseRefQuery(raw string) (engine.State, error) {
	q, err := Query(raw, RefParameters)
	if err != nil || !q.Has("if_state") {
		return engine.Gone, err
	}
	return state("if_state", q.Get("if_state"))
}

// QueuesQuery returns the query of a list of queues.
func QueuesQuery(after string, limit int) string { return page(after, limit).Encode() }

// ParseQueuesQuery reads the query of a list of queues. n is the limit; 0: not given.
func ParseQueuesQuery(raw string) (after string, n int, err error) {
	q, err := Query(raw, PageParameters)
	if err != nil {
		return "", 0, err
	}
	n, err = limit(q)
	return q.Get("after"), n, err
}

// The default step and span of a forecast.
const (
	DefaultStep = time.Minute
	DefaultSpan = time.Hour
)

// ForecastQuery returns the query of a forecast.
func ForecastQuery(step, span time.Duration) string {
	return url.Values{"step": {duration.Format(step)}, "span": {duration.Format(span)}}.Encode()
}

// ParseForecastQuery reads the query of a forecast.
func ParseForecastQuery(raw string) (step, span time.Duration, err error) {
	q, err := Query(raw, ForecastParameters)
	if err != nil {
		return 0, 0, err
	}
	step, span = DefaultStep, DefaultSpan
	for _, p := range []struct {
		name string
		d    *time.Duration
	}{{"step", &step}, {"span", &span}} {
		if v := q.Get(p.name); v != "" {
			if *p.d, err = parseDuration(p.name, v); err != nil {
				return 0, 0, err
			}
		}
	}
	return step, span, nil
}
