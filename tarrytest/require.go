package tarrytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// RequirePushed ends the test unless a message with this body and these options was pushed to
// the topic, and returns the first such message. Options that are not given may have any
// value, and so may those that the topic sets. In counts from the push. Bodies in JSON are
// compared as JSON. OnConflict is not compared.
func RequirePushed[T any](t testing.TB, c *Client, topic *tarry.Topic[T], body T, opts ...tarry.PushOption) tarry.Found[T] {
	t.Helper()
	draft, err := topic.Draft(body)
	if err != nil {
		t.Fatalf("tarrytest: RequirePushed: %v", err)
	}
	want := tarry.NewDraft(topic.Queue(), draft.Body, opts...)
	var nearest []string // the shortest diff
	pushed := c.store.pushed(topic.Queue())
	for _, r := range pushed {
		d := diff(lines(filled(r, &want), &want), lines(r, &want))
		if d == nil {
			return found(t, c, topic, &r)
		}
		if nearest == nil || changes(d) < changes(nearest) {
			nearest = d
		}
	}
	var b strings.Builder
	if nearest == nil {
		fmt.Fprintf(&b, "nothing was pushed to %s", topic.Queue())
		now := record{Info: tarry.Info{Due: c.Now()}, at: c.Now()}
		list(&b, "wanted:", lines(filled(now, &want), &want))
	} else {
		fmt.Fprintf(&b, "no such message was pushed to %s; the nearest of %d (- wanted, + pushed)", topic.Queue(), len(pushed))
		list(&b, "", nearest)
	}
	list(&b, "all that was pushed:", c.overview(c.store.pushed()))
	t.Fatal("tarrytest: " + b.String())
	return tarry.Found[T]{}
}

// RequireNothingPushed ends the test if something was pushed to the topics; without topics, to
// any queue.
func RequireNothingPushed(t testing.TB, c *Client, topics ...interface{ Queue() string }) {
	t.Helper()
	var queues []string
	for _, topic := range topics {
		queues = append(queues, topic.Queue())
	}
	if pushed := c.store.pushed(queues...); len(pushed) > 0 {
		var b strings.Builder
		list(&b, "nothing should have been pushed, but there is:", c.overview(pushed))
		t.Fatal("tarrytest: " + strings.TrimSpace(b.String()))
	}
}

// Pushed returns what was pushed to a topic and not cancelled, in order. The State is the
// present one, and Gone when the message was handled; all else is as it was pushed.
func Pushed[T any](t testing.TB, c *Client, topic *tarry.Topic[T]) (all []tarry.Found[T]) {
	t.Helper()
	for _, r := range c.store.pushed(topic.Queue()) {
		all = append(all, found(t, c, topic, &r))
	}
	return all
}

func found[T any](t testing.TB, c *Client, topic *tarry.Topic[T], r *record) tarry.Found[T] {
	t.Helper()
	body, err := topic.Decode(r.Info)
	if err != nil {
		t.Fatalf("tarrytest: %v", err)
	}
	r.State = c.store.state(r)
	return tarry.Found[T]{Body: body, Info: r.Info}
}

// filled returns a record with what is wanted in place of what it has.
func filled(r record, want *tarry.Draft) record {
	r.Body = want.Body
	if want.Key != "" {
		r.Key = want.Key
	}
	if !want.Due.IsZero() {
		r.Due = time.UnixMilli(want.Due.Resolve(r.at))
	}
	if want.ContentType != "" {
		r.ContentType = want.ContentType
	}
	r.Headers = slices.Clone(r.Headers)
	for _, h := range want.Headers {
		r.Headers = withHeader(r.Headers, h)
	}
	p := r.Policy
	r.Policy = want.Terms.Resolve(&engine.Terms{
		Priority: &p.Priority, MaxAttempts: p.MaxAttempts, Backoff: p.Backoff, TTR: p.TTR,
		ExpireAfter: p.ExpireAfter, Remember: p.Remember, Isolate: &p.Isolate,
	})
	return r
}

// withHeader returns headers of which one is h, in place of another of its name.
func withHeader(hs []tarry.MessageHeader, h tarry.MessageHeader) []tarry.MessageHeader {
	if slices.Contains(hs, h) {
		return hs
	}
	i := slices.IndexFunc(hs, func(x tarry.MessageHeader) bool { return x.Name == h.Name })
	if i < 0 {
		return append(hs, h)
	}
	hs[i] = h
	return hs
}

// lines describes a message, and of its options those that are wanted.
func lines(r record, want *tarry.Draft) []string {
	var ls []string
	line := func(wanted bool, format string, args ...any) {
		if wanted {
			ls = append(ls, fmt.Sprintf(format, args...))
		}
	}
	line(true, "key %q", r.Key)
	line(true, "due %s", due(&r))
	for _, h := range r.Headers {
		line(true, "header %s: %s", h.Name, h.Value)
	}
	line(want.ContentType != "", "content type %s", r.ContentType)
	line(want.Priority != nil, "priority %d", r.Priority)
	line(want.MaxAttempts != 0, "max attempts %d", r.MaxAttempts)
	line(len(want.Backoff) > 0, "backoff %v", r.Backoff)
	line(want.TTR != 0, "ttr %s", r.TTR)
	line(want.ExpireAfter != 0, "expire after %s", r.ExpireAfter)
	line(want.Remember != 0, "remember %s", r.Remember)
	line(want.Isolate != nil, "isolate %t", r.Isolate)
	line(true, "body")
	for text := range strings.SplitSeq(readable(r.Body), "\n") {
		line(true, "  %s", text)
	}
	return ls
}

// due says when a message is due.
func due(r *record) string {
	at := r.Due.UTC().Format("2006-01-02 15:04:05.999")
	if d := r.Due.Sub(r.at.Truncate(time.Millisecond)); d > 0 {
		return "in " + tarry.FormatDuration(d) + ", at " + at
	}
	return "at once, at " + at
}

// readable returns a body as text, JSON in one form.
func readable(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if json.Valid(body) && d.Decode(&v) == nil {
		if text, err := json.MarshalIndent(v, "", "  "); err == nil {
			return string(text)
		}
	}
	if !utf8.Valid(body) {
		return fmt.Sprintf("%q", body)
	}
	return string(body)
}

// overview describes messages, a line each.
func (c *Client) overview(pushed []record) (ls []string) {
	for _, r := range pushed {
		state := c.store.state(&r).String()
		ls = append(ls, fmt.Sprintf("%s %s: key %q, due %s, %s", r.Queue, r.ID, r.Key, due(&r), state))
	}
	return ls
}

// list writes lines, if there are any, below a heading.
func list(b *strings.Builder, heading string, ls []string) {
	if heading != "" && len(ls) > 0 {
		fmt.Fprintf(b, "\n%s", heading)
	}
	for _, l := range ls {
		fmt.Fprintf(b, "\n  %s", l)
	}
}
