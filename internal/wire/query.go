package wire

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// The parameters of queries.
var (
	NoParameters   = parameters()
	ListParameters = parameters(
		parameter("state", isState, "of this one alone; without it: ready, leased, scheduled, dead, one after another"),
		parameter("from", isTime, "whose time is this or later: due of scheduled and ready ones, the lease's end of leased ones, death of dead ones, end of finished ones"),
		parameter("to", isTime, "whose time is earlier"),
		parameter("order", wordsSchema("asc", "desc").With("default", "asc"), "by that time"),
		isKeyPrefix, isHeader,
		parameter("ending", wordsSchema(words(engine.Acked, engine.Expired)...), "of finished ones, those that ended so; needs their state"),
		parameter("after", isText, "the next of the page before, of the same state, bounds and order"),
		parameter("limit", isLimit, "messages at most"),
		parameter("body", isFlag.With("default", false), "with bodies"))
	FindParameters = parameters(
		parameter("key", isKey, "with this key: as GET of the key tells, of each queue"),
		isKeyPrefix, isHeader,
		parameter("after", isText, "the next of the answer before, to the same question"),
		parameter("limit", isLimit, "messages at most"),
		parameter("body", isFlag.With("default", false), "with bodies"))
	RefParameters = parameters(
		parameter("if_state", isStoredState, "only if the message is in this state; else stale"))
	PageParameters = parameters(
		parameter("after", isText, "the next of the page before"),
		parameter("limit", isLimit, "queues at most"))
	ForecastParameters = parameters(
		parameter("step", isDuration.With("default", duration.Format(DefaultStep)), "whole minutes"),
		parameter("span", isDuration.With("default", duration.Format(DefaultSpan)), "how far to look"))

	isKeyPrefix = parameter("key_prefix", isKey, "whose key begins so")
	isHeader    = parameter("header", textSchema(1, engine.MaxHeaderBytes).With("examples", []string{"tenant", "tenant:acme"}), "with a header of this name, or of this name and, after : or =, this value")

	isLimit = wholeSchema(1, engine.MaxPage).With("default", 100)
)

// CheckQuery fails for a parameter that the Shape does not have, and for one that is given
// twice.
func CheckQuery(raw string, s *Shape) error { return parseQuery(raw, s).err }

// query reads the parameters of a path. err is the first error. A parameter that is empty
// counts as missing.
type query struct {
	url.Values
	err error
}

func parseQuery(raw string, s *Shape) *query {
	q := new(query)
	if raw == "" {
		return q
	}
	var err error
	if q.Values, err = url.ParseQuery(raw); err != nil {
		q.fail(Wrong("the query is malformed: %v", err))
	}
	for name, values := range q.Values {
		switch {
		case !slices.Contains(s.names, name):
			q.fail(Wrong("%s: no such parameter", engine.Clip(name)))
		case len(values) > 1:
			q.fail(Wrong("%s: given twice", name))
		}
	}
	return q
}

func (q *query) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// limit reads the longest length of a page; 0: not given.
func (q *query) limit() int { return q.whole("limit", engine.MaxPage) }

// whole reads a number from 1 to most; 0: not given.
func (q *query) whole(name string, most int) int {
	s := q.Get(name)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		q.fail(Wrong("%s: must be a whole number from 1 to %d, not %s", name, most, engine.Clip(s)))
	}
	return n
}

// oneOf reads a parameter that is one of two words; "": not given.
func (q *query) oneOf(name, a, b string) string {
	s := q.Get(name)
	if s != "" && s != a && s != b {
		q.fail(Wrong("%s: must be %s or %s, not %s", name, a, b, engine.Clip(s)))
	}
	return s
}

// state reads the state to list; Gone: not given.
func (q *query) state() engine.State {
	s := q.Get("state")
	if s == "" {
		return engine.Gone
	}
	st, err := engine.ParseState(s)
	if err != nil || st == engine.Gone {
		q.fail(Wrong("state: must be scheduled, ready, leased, dead or finished, not %q", engine.Clip(s)))
	}
	return st
}

// instant reads a time; zero: not given.
func (q *query) instant(name string) time.Time {
	s := q.Get(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		q.fail(Wrong("%s: %q is not a time", name, engine.Clip(s)).WithHint("a time is in RFC 3339, such as 2030-01-31T23:59:59.999Z; in a query + is written %2B"))
	}
	return t.UTC()
}

// duration reads a duration; otherwise, if it is not given.
func (q *query) duration(name string, otherwise time.Duration) time.Duration {
	s := q.Get(name)
	if s == "" {
		return otherwise
	}
	d, err := duration.Parse(s)
	switch err {
	case nil:
	case duration.ErrRange:
		q.fail(Wrong("%s: %q is %v", name, engine.Clip(s), err))
	default:
		q.fail(Wrong("%s: %q is not a duration", name, engine.Clip(s)).WithHint(durationHint))
	}
	return d
}

// queues reads at most most names of queues; nil: not given.
func (q *query) queues(most int) []string {
	s := q.Get("queues")
	if s == "" {
		return nil
	}
	names := strings.Split(s, ",")
	if len(names) > most {
		q.fail(Wrong("queues: more than %d", most))
		return nil // a query has room for very many
	}
	for _, name := range names {
		if engine.CheckQueue("read", name) != nil {
			q.fail(Wrong("queues: %q is not the name of a queue", engine.Clip(name)))
		}
	}
	return names
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
func ParseListQuery(queue, raw string) (engine.ListQuery, Chosen, error) {
	q := parseQuery(raw, ListParameters)
	l := engine.ListQuery{
		Queue: queue, State: q.state(), From: q.instant("from"), To: q.instant("to"), Newest: q.oneOf("order", "asc", "desc") == "desc",
		After: q.Get("after"), Limit: q.limit(), Body: q.oneOf("body", "true", "false") == "true",
	}
	c := q.chosen()
	if s := q.Get("ending"); s != "" {
		var err error
		if c.Ending, err = engine.ParseEnding(s); err != nil {
			q.fail(Wrong("ending: must be acked, cancelled or expired, not %q", engine.Clip(s)))
		}
		if l.State != engine.Finished {
			q.fail(Wrong("ending: needs state=finished"))
		}
	}
	if c.Header != "" && l.State == engine.Finished {
		q.fail(Wrong("header: finished messages have no headers"))
	}
	return l, c, q.err
}

// Chosen is what messages must have to be listed. The zero Chosen: anything.
type Chosen struct {
	KeyPrefix, Header string
	Ending            engine.Ending
}

// chosen reads what messages must have.
func (q *query) chosen() Chosen {
	return Chosen{KeyPrefix: q.text("key_prefix", engine.MaxKeyBytes), Header: q.text("header", engine.MaxHeaderBytes)}
}

// text reads a parameter that is not empty; "": not given.
func (q *query) text(name string, most int) string {
	s := q.Get(name)
	switch {
	case s == "" && q.Has(name):
		q.fail(Wrong("%s: is empty", name))
	case len(s) > most:
		q.fail(Wrong("%s: has %d bytes; at most %d are allowed", name, len(s), most))
	case !utf8.ValidString(s):
		q.fail(Wrong("%s: is not valid UTF-8", name))
	}
	return s
}

// Find is a search in all queues, for a key or for what is chosen.
type Find struct {
	Key string
	Chosen
	After string
	Limit int // 0: not given
	Body  bool
}

// ParseFindQuery reads the query of a search in all queues.
func ParseFindQuery(raw string) (Find, error) {
	q := parseQuery(raw, FindParameters)
	f := Find{
		Key: q.text("key", engine.MaxKeyBytes), Chosen: q.chosen(), After: q.Get("after"), Limit: q.limit(), Body: q.oneOf("body", "true", "false") == "true",
	}
	switch {
	case f.Key == "" && f.Chosen == Chosen{}:
		q.fail(Wrong("give key, key_prefix or header"))
	case f.Key != "" && f.Chosen != Chosen{}:
		q.fail(Wrong("key: cannot be combined with key_prefix or header"))
	}
	return f, q.err
}

// state reads the state of a live or dead message.
func state(name, s string) (engine.State, error) {
	state, err := engine.ParseState(s)
	if err != nil || !state.Live() && state != engine.Dead {
		return engine.Gone, Wrong("%s: must be scheduled, ready, leased or dead, not %q", name, engine.Clip(s))
	}
	return state, nil
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
	q := parseQuery(raw, RefParameters)
	if !q.Has("if_state") {
		return engine.Gone, q.err
	}
	// An empty state is wrong: perhaps the caller forgot to set a variable.
	s, err := state("if_state", q.Get("if_state"))
	return s, cmp.Or(q.err, err)
}

// QueuesQuery returns the query of a list of queues.
func QueuesQuery(after string, limit int) string { return page(after, limit).Encode() }

// ParseQueuesQuery reads the query of a list of queues. n is the limit; 0: not given.
func ParseQueuesQuery(raw string) (after string, n int, err error) {
	q := parseQuery(raw, PageParameters)
	return q.Get("after"), q.limit(), q.err
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
	q := parseQuery(raw, ForecastParameters)
	return q.duration("step", DefaultStep), q.duration("span", DefaultSpan), q.err
}
