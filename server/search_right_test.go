package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/server/access"
)

// A token finds what is in the queues that it may read, and is told of no other.
func TestSearchOfTokens(t *testing.T) {
	g := newGuarded(t)
	all := g.create("all", access.Admin, []string{"*"}, time.Time{})
	mine := g.create("mine", access.Read, []string{"mine.*"}, time.Time{})
	for _, q := range []string{"a", "mine.a", "mine.b", "n", "z"} {
		g.ask(all, "POST", "/v1/queues/"+q+"/messages", `{"key":"k","headers":{"h":"v"}}`)
	}
	for secret, want := range map[string][]string{all: {"a", "mine.a", "mine.b", "n", "z"}, mine: {"mine.a", "mine.b"}} {
		for _, query := range []string{"key=k", "key_prefix=k", "header=h", "header=h:v&key_prefix=k"} {
			var got []string
			for after, more := "", true; more; more = after != "" {
				w := g.ask(secret, "GET", "/v1/messages?limit=1&"+query+"&after="+url.QueryEscape(after), "")
				var page struct {
					Messages []struct{ Queue string }
					Next     string
				}
				if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
					t.Fatal(w.Code, w.Body, err)
				}
				for _, m := range page.Messages {
					got = append(got, m.Queue)
				}
				after = page.Next
				if queue, _, _ := strings.Cut(after, " "); after != "" && !slices.Contains(want, queue) {
					t.Errorf("%s tells of the queue %q", query, queue)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s found messages in %q, want %q", query, got, want)
			}
		}
	}
	for _, after := range []string{"a ready:", "a x", "mine.c ready:"} {
		w := g.ask(mine, "GET", "/v1/messages?key_prefix=k&after="+url.QueryEscape(after), "")
		if forbidden := w.Code == 403; forbidden != strings.HasPrefix(after, "a ") {
			t.Errorf("after %q: %d %s", after, w.Code, w.Body)
		}
	}
	if w := g.ask(mine, "GET", fmt.Sprintf("/v1/queues/%s/messages?key_prefix=k", "a"), ""); w.Code != 403 {
		t.Errorf("of a queue of others: %d %s", w.Code, w.Body)
	}
}
