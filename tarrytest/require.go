package tarrytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// RequirePushed ends the test unless a message with this body and these options was pushed to
// the topic, and returns the first such message. Options that are not given may have any
// value, and so may those that the topic sets. In counts from the push; for what is due at once,
// give At with Client.Now. Bodies in JSON are compared as JSON. OnConflict is not compared.
func RequirePushed[T any](t testing.TB, c *Client, topic *tarry.Topic[T], body T, opts ...tarry.PushOption) tarry.Found[T] {
	t.Helper()
	draft, err := topic.Draft(body)
	if err != nil {
		t.Fatalf("tarrytest: RequirePushed: %v", err)
	}
	want := tarry.NewDraft(topic.Queue(), draft.Body, opts...)
	none := record{tarry.Info{Content: draft.Content, Due: c.Now(), Policy: want.Terms.Resolve(nil)}, c.Now()}
	nearest, fewest := diff(lines(filled(none, &want)), nil)
	for i, r := range c.store.pushed(topic) {
		d, differ := diff(lines(filled(r, &want)), lines(r))
		if differ == 0 {
			return found(t, topic, &r)
		}
		if i == 0 || differ < fewest {
			nearest, fewest = d, differ
		}
	}
	t.Fatalf("tarrytest: no such message was pushed to %s (- wanted, + pushed, the nearest):%s\nall that was pushed:%s",
		topic.Queue(), list(nearest), list(overview(c.store.pushed())))
	return tarry.Found[T]{}
}

// RequireNothingPushed ends the test if something was pushed to the topics; without topics, to
// any queue.
func RequireNothingPushed(t testing.TB, c *Client, topics ...interface{ Queue() string }) {
	t.Helper()
	if pushed := c.store.pushed(topics...); len(pushed) > 0 {
		t.Fatalf("tarrytest: nothing should have been pushed, but there is:%s", list(overview(pushed)))
	}
}

// Pushed returns what was pushed to a topic and not cancelled, in order. The State is the
// present one, and Gone when the message was handled; all else is as it was pushed.
func Pushed[T any](t testing.TB, c *Client, topic *tarry.Topic[T]) (all []tarry.Found[T]) {
	t.Helper()
	for _, r := range c.store.pushed(topic) {
		all = append(all, found(t, topic, &r))
	}
	return all
}

func found[T any](t testing.TB, topic *tarry.Topic[T], r *record) tarry.Found[T] {
	t.Helper()
	body, err := topic.Decode(r.Info)
	if err != nil {
		t.Fatalf("tarrytest: %v", err)
	}
	return tarry.Found[T]{Body: body, Info: r.Info}
}

// filled returns a record with what is wanted in place of what it has.
func filled(r record, want *tarry.Draft) record {
	r.Body = want.Body
	r.Key, r.ContentType = cmp.Or(want.Key, r.Key), cmp.Or(want.ContentType, r.ContentType)
	if !want.Due.IsZero() {
		r.Due = time.UnixMilli(want.Due.Resolve(r.at))
	}
	r.Headers = slices.Clone(r.Headers)
	for _, h := range want.Headers {
		if !slices.Contains(r.Headers, h) {
			r.Headers = append(r.Headers, h)
		}
	}
	p := r.Policy
	r.Policy = want.Terms.Resolve(&engine.Terms{
		Priority: &p.Priority, MaxAttempts: p.MaxAttempts, Backoff: p.Backoff, TTR: p.TTR,
		ExpireAfter: p.ExpireAfter, Remember: p.Remember, Isolate: &p.Isolate,
	})
	return r
}

// lines describes a message.
func lines(r record) []string {
	ls := []string{fmt.Sprintf("key %q", r.Key), "due " + due(&r), "content type " + r.ContentType, fmt.Sprintf("terms %+v", r.Policy)}
	for _, h := range r.Headers {
		ls = append(ls, "header "+h.Name+": "+h.Value)
	}
	for line := range strings.SplitSeq(readable(r.Body), "\n") {
		ls = append(ls, "  "+line)
	}
	return ls
}

// due says when a message is due.
func due(r *record) string {
	in := r.Due.Sub(r.at.Truncate(time.Millisecond))
	return "in " + tarry.FormatDuration(in) + ", at " + r.Due.UTC().Format("2006-01-02 15:04:05.999")
}

// readable returns a body as text, JSON in one form.
func readable(body []byte) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	switch {
	case json.Valid(body) && d.Decode(&v) == nil:
		body, _ = json.MarshalIndent(v, "", "  ") // it can be encoded as it was
	case !utf8.Valid(body):
		return strconv.Quote(string(body))
	}
	return string(body)
}

// overview describes messages, a line each.
func overview(pushed []record) (ls []string) {
	for _, r := range pushed {
		ls = append(ls, fmt.Sprintf("%s %s: key %q, due %s, %s", r.Queue, r.ID, r.Key, due(&r), r.State))
	}
	return ls
}

// list returns lines, each on a line of its own.
func list(ls []string) string { return strings.TrimRight("\n  "+strings.Join(ls, "\n  "), "\n ") }

// diff returns the lines of two texts, with "- " and "+ " where they differ, and how many do.
func diff(want, got []string) (out []string, differ int) {
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(want) > 0 && len(got) > 0 && want[0] == got[0]:
			out = append(out, "  "+want[0])
			want, got = want[1:], got[1:]
			continue
		case len(want) > 0 && !slices.Contains(got, want[0]):
			out = append(out, "- "+want[0])
			want = want[1:]
		default: // if want[0] is in got at all, then later
			out = append(out, "+ "+got[0])
			got = got[1:]
		}
		differ++
	}
	return out, differ
}
