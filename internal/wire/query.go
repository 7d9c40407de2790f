package wire

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// notEmpty are the parameters that must not be empty, since the caller may have forgotten to
// set a variable. Other empty parameters count as missing.
var notEmpty = []string{"key", "key_prefix", "header", "if_state"}

// ParseQuery reads a query as the JSON object that it stands for: state=dead&limit=5 is
// {"state":"dead","limit":5}.
func (o *Object[T]) ParseQuery(raw string) (v T, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return v, Wrong("the query is malformed: %v", err)
	}
	b := []byte{'{'}
	for name, all := range values {
		i := slices.Index(o.names, name)
		switch {
		case i < 0:
			return v, Wrong("%s: no such parameter", engine.Clip(name))
		case len(all) > 1:
			return v, Wrong("%s: given twice", name)
		case !utf8.ValidString(all[0]):
			return v, Wrong("%s: is not valid UTF-8", name)
		case all[0] == "" && !slices.Contains(notEmpty, name):
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(AppendString(b, name), ':')
		if text := jsontext.Value(all[0]); o.members[i].bare() && text.IsValid() && strings.ContainsAny(all[0][:1], "-0123456789tf") {
			b = append(b, all[0]...)
		} else {
			b = AppendString(b, all[0])
		}
	}
	err = readAll(append(b, '}'), false, func(r *Reader) { o.read(r, "query", &v) })
	return v, err
}

// FormatQuery returns the query that says v.
func (o *Object[T]) FormatQuery(v *T) string {
	values := make(url.Values)
	for i := range o.members {
		m := &o.members[i]
		if m.omit != nil && m.omit(v) {
			continue
		}
		text := m.append(nil, v)
		if !m.bare() {
			text, _ = jsontext.AppendUnquote(nil, text)
		}
		values.Set(m.name, string(text))
	}
	return values.Encode()
}

// bare reports whether JSON writes the values of a field without quotes.
func (f *field) bare() bool { return f.is[0].Value == "integer" || f.is[0].Value == "boolean" }

// The kinds of values that only queries have.
var (
	asLimit  = whole[int](1, engine.MaxPage).described(wholeSchema(1, engine.MaxPage).With("default", 100))
	asBodies = asFlag.described(isFlag.With("default", false))
	asBound  = instants(isTime, func(b []byte, t time.Time) []byte { return append(append(append(b, '"'), formatInstant(t)...), '"') })
	asNewest = scalar(wordsSchema("asc", "desc").With("default", "asc"), func(r *Reader, name string) bool {
		s, ok := r.bytes(name)
		if ok && string(s) != "asc" && string(s) != "desc" {
			r.Wrong("%s: must be asc or desc, not %q", name, engine.Clip(string(s)))
		}
		return string(s) == "desc"
	}, func(b []byte, newest bool) []byte { return append(b, `"desc"`...) })
	asPositive = asDuration.checked(func(r *Reader, name string, d time.Duration) {
		if d == 0 {
			r.Wrong("%s: must be longer than nothing", name)
		}
	})
)

// queueNames returns the kind of names of at most most queues, with commas between.
func queueNames(most int) kind[[]string] {
	return kind[[]string]{
		is: isText.With("examples", []string{"order.unpaid,mail"}),
		read: func(r *Reader, name string, queues *[]string) {
			text := r.text(name)
			if strings.Count(text, ",") >= most { // a query has room for very many
				r.Wrong("%s: more than %d", name, most)
				return
			}
			*queues = strings.Split(text, ",")
			for _, q := range *queues {
				if engine.CheckQueue("read", q) != nil {
					r.Wrong("%s: %q is not the name of a queue", name, engine.Clip(q))
				}
			}
		},
		append: func(b []byte, queues *[]string) []byte { return AppendString(b, strings.Join(*queues, ",")) },
		zero:   func(queues *[]string) bool { return *queues == nil },
	}
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

// List asks for messages of a queue, or of all queues. A State of Gone and a Limit of 0 are not
// given.
type List struct {
	engine.ListQuery
	Key string // of all queues; "": any
	Chosen
}

// Chosen is what messages must have to be listed. The zero Chosen: anything.
type Chosen struct {
	KeyPrefix, Header string
	Ending            engine.Ending
}

// ListQuery asks for messages of a queue, FindQuery for those of all queues.
var (
	ListQuery = requestObject("", "",
		optional("state", named(engine.Scheduled, engine.Finished), func(l *List) *engine.State { return &l.State }, "of this one alone; without it: ready, leased, scheduled, dead, one after another"),
		optional("from", asBound, func(l *List) *time.Time { return &l.From }, "whose time is this or later: due of scheduled and ready ones, the lease's end of leased ones, death of dead ones, end of finished ones"),
		optional("to", asBound, func(l *List) *time.Time { return &l.To }, "whose time is earlier"),
		optional("order", asNewest, func(l *List) *bool { return &l.Newest }, "by that time"),
		withKeyPrefix, withHeader,
		optional("ending", asEnding, func(l *List) *engine.Ending { return &l.Ending }, "of finished ones, those that ended so; needs their state"),
		optional("after", asText, func(l *List) *string { return &l.After }, "the next of the page before, of the same state, bounds and order"),
		limitOfList, withBodies,
	).checked(func(r *Reader, _ Fields, l *List) {
		switch {
		case l.Ending != 0 && l.State != engine.Finished:
			r.Wrong("ending: needs state=finished")
		case l.Header != "" && l.State == engine.Finished:
			r.Wrong("header: finished messages have no headers")
		}
	})
	FindQuery = requestObject("", "",
		optional("key", textOf(engine.MaxKeyBytes).described(isKey), func(l *List) *string { return &l.Key }, "with this key: as GET of the key tells, of each queue"),
		withKeyPrefix, withHeader,
		optional("after", asText, func(l *List) *string { return &l.After }, "the next of the answer before, to the same question"),
		limitOfList, withBodies,
	).checked(func(r *Reader, _ Fields, l *List) {
		switch {
		case l.Key == "" && l.Chosen == Chosen{}:
			r.Wrong("give key, key_prefix or header")
		case l.Key != "" && l.Chosen != Chosen{}:
			r.Wrong("key: cannot be combined with key_prefix or header")
		}
	})

	withKeyPrefix = optional("key_prefix", textOf(engine.MaxKeyBytes).described(isKey), func(l *List) *string { return &l.KeyPrefix }, "whose key begins so")
	withHeader    = optional("header", textOf(engine.MaxHeaderBytes).described(textSchema(1, engine.MaxHeaderBytes).With("examples", []string{"tenant", "tenant:acme"})),
		func(l *List) *string { return &l.Header }, "with a header of this name, or of this name and, after : or =, this value")
	limitOfList = optional("limit", asLimit, func(l *List) *int { return &l.Limit }, "messages at most")
	withBodies  = optional("body", asBodies, func(l *List) *bool { return &l.Body }, "with bodies")
)

// RefQuery says the state that a message must be in; Gone: any.
var RefQuery = requestObject("", "", optional("if_state", asStanding, itself, "only if the message is in this state; else stale"))

// asStanding is the state of a live or dead message.
var asStanding = named(engine.Scheduled, engine.Dead)

// PageAsked asks for a page of a list.
type PageAsked struct {
	After string
	Limit int // 0: not given
}

// PageQuery asks for a page of queues.
var PageQuery = pageQuery("queues at most")

func pageQuery(limit string) *Object[PageAsked] {
	return requestObject("", "",
		optional("after", asText, func(p *PageAsked) *string { return &p.After }, "the next of the page before"),
		optional("limit", asLimit, func(p *PageAsked) *int { return &p.Limit }, limit))
}

// The default step and span of a forecast.
const (
	DefaultStep = time.Minute
	DefaultSpan = time.Hour
)

// ForecastAsked asks for a forecast.
type ForecastAsked struct{ Step, Span time.Duration }

// ForecastQuery asks for a forecast.
var ForecastQuery = requestObject("", "",
	optional("step", asPositive.described(isDuration.With("default", duration.Format(DefaultStep))), func(f *ForecastAsked) *time.Duration { return &f.Step }, "whole minutes"),
	optional("span", asPositive.described(isDuration.With("default", duration.Format(DefaultSpan))), func(f *ForecastAsked) *time.Duration { return &f.Span }, "how far to look"),
).checked(func(_ *Reader, _ Fields, f *ForecastAsked) {
	f.Step, f.Span = cmp.Or(f.Step, DefaultStep), cmp.Or(f.Span, DefaultSpan)
})
