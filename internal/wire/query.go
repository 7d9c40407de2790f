package wire

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// Query reads the parameters of a path, of which only those named may be there, and
// each once.
func Query(raw string, names ...string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, Wrong("the query is malformed: %v", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(names, name):
			return nil, Wrong("%s: no such parameter", engine.Clip(name))
		case len(values) > 1:
			return nil, Wrong("%s: given twice", name)
		}
	}
	return q, nil
}

// limit reads how long a page may be; 0 when nothing is said.
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

// page are the parameters that go on with a list.
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

// ListQuery is the query of a list.
func ListQuery(q *engine.ListQuery) string {
	v := page(q.After, q.Limit)
	if q.State != engine.Gone {
		v.Set("state", q.State.String())
	}
	if q.Body {
		v.Set("body", "true")
	}
	return v.Encode()
}

// ParseListQuery reads the query of a list of a queue. Without a state it is Gone,
// without a limit 0.
func ParseListQuery(queue, raw string) (engine.ListQuery, error) {
	l := engine.ListQuery{Queue: queue}
	q, err := Query(raw, "state", "after", "limit", "body")
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
	if name := q.Get("state"); name != "" {
		if l.State, err = engine.ParseState(name); err != nil || l.State == engine.Gone {
			return l, Wrong("state: must be scheduled, ready, leased or dead, not %s", engine.Clip(name))
		}
	}
	return l, nil
}

// QueuesQuery is the query of a list of queues.
func QueuesQuery(after string, limit int) string { return page(after, limit).Encode() }

// ParseQueuesQuery reads the query of a list of queues; without a limit that is 0.
func ParseQueuesQuery(raw string) (after string, n int, err error) {
	q, err := Query(raw, "after", "limit")
	if err != nil {
		return "", 0, err
	}
	n, err = limit(q)
	return q.Get("after"), n, err
}

// The steps and span of a forecast unless told otherwise.
const (
	DefaultStep = time.Minute
	DefaultSpan = time.Hour
)

// ForecastQuery is the query of a forecast.
func ForecastQuery(step, span time.Duration) string {
	return url.Values{"step": {duration.Format(step)}, "span": {duration.Format(span)}}.Encode()
}

// ParseForecastQuery reads the query of a forecast.
func ParseForecastQuery(raw string) (step, span time.Duration, err error) {
	q, err := Query(raw, "step", "span")
	if err != nil {
		return 0, 0, err
	}
	step, span = DefaultStep, DefaultSpan
	for _, p := range []struct {
		name string
		d    *time.Duration
	}{{"step", &step}, {"span", &span}} {
		if v := q.Get(p.name); v != "" {
			if *p.d, err = duration.Parse(v); err != nil {
				return 0, 0, Wrong("%s: %q is not a duration", p.name, engine.Clip(v)).WithHint(durationHint)
			}
		}
	}
	return step, span, nil
}
