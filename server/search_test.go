package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// searched is what a search found, page by page.
type searched struct {
	keys  []string // of each message
	read  []int    // of each page
	found []int    // messages of each page

	slowest time.Duration // of the pages
}

// search follows a search to its end.
func (a *api) search(path string) (s searched) {
	a.Helper()
	for after := ""; ; {
		began := time.Now()
		got := a.call(200, "GET", path+"&after="+url.QueryEscape(after), "")
		s.slowest = max(s.slowest, time.Since(began))
		s.read, s.found = append(s.read, int(got["read"].(float64))), append(s.found, 0)
		for _, m := range got["messages"].([]any) {
			s.found[len(s.found)-1]++
			s.keys = append(s.keys, fmt.Sprint(field(a, m, "queue"), "/", field(a, m, "key")))
		}
		if after = got["next"].(string); after == "" {
			return s
		}
	}
}

// aStore returns an API over queues with messages in all states: the nth message of each has
// the key name-n, and the headers tenant: n%2 and a:b: x.
func aStore(t *testing.T, n int, names ...string) *api {
	a := aBubble(t, memengine.New(nil))
	for _, q := range names {
		var ms []tarry.Draft
		for i := range n {
			ms = append(ms, tarry.NewDraft(q, []byte("x"), tarry.Key(fmt.Sprintf("%s-%03d", q, i)), tarry.Header("tenant", fmt.Sprint(i%2)), tarry.Header("a:b", "x"), tarry.In(time.Duration(i%4)*time.Hour)))
		}
		if _, err := a.c.PushMany(t.Context(), ms); err != nil {
			t.Fatal(err)
		}
		got, err := a.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{q}, Max: 2, LeaseOptions: tarry.LeaseOptions{TTR: time.Hour}})
		if err != nil || len(got.Messages) != 2 {
			t.Fatal(got, err)
		}
		if _, err := a.c.Settle(t.Context(), []engine.Settlement{{Token: got.Messages[0].Token, Do: engine.Bury}}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// What a search finds is what is there, on pages of any length, in any state.
func TestSearchOfAQueue(t *testing.T) {
	a := aStore(t, 200, "q")
	whole := a.search("/v1/queues/q/messages?key_prefix=q-")
	if len(whole.keys) != 200 || len(whole.read) != 2 || whole.read[0] != 100 {
		t.Errorf("a prefix that all keys have found %d messages on pages of %v", len(whole.keys), whole.read)
	}
	for query, want := range map[string]int{
		"key_prefix=q-01": 10, "key_prefix=q-013": 1, "key_prefix=q-013x": 0, "key_prefix=q": 200, "key_prefix=%00": 0, "key_prefix=q-*": 0,
		"header=tenant": 200, "header=tenant:1": 100, "header=tenant=1": 100, "header=tenant:2": 0, "header=tenant:": 0, "header=tenan": 0, "header=Tenant": 0,
		"header=a:b": 200, "header=a:b:x": 200, "header=a:b=x": 200, "header=a": 0, "header=b": 0,
		"key_prefix=q-01&header=tenant:0": 5, "key_prefix=q-01&state=scheduled": 8, "header=tenant:0&state=dead": 1, "header=tenant:0&state=leased": 1,
		"key_prefix=q-01&state=scheduled&order=desc": 8,
	} {
		for _, limit := range []int{1, 3, 100, 1000} {
			got := a.search(fmt.Sprintf("/v1/queues/q/messages?%s&limit=%d", query, limit))
			once := slices.Clone(got.keys)
			slices.Sort(once)
			once = slices.Compact(once)
			if len(got.keys) != want || len(once) != want || slices.Max(got.found) > limit {
				t.Errorf("%s by %d found %q on pages of %v, want %d", query, limit, got.keys, got.found, want)
			}
		}
	}
	got := a.call(200, "GET", "/v1/queues/q/messages?key_prefix=q-007&body=true", "")
	if field(t, got, "messages", 0, "body_base64") != "eA==" {
		t.Errorf("with its body it is %v", got)
	}
}

// Finished messages are chosen by their ending.
func TestSearchByEnding(t *testing.T) {
	a := aBubble(t, memengine.New(&memengine.Config{History: engine.History{Keep: time.Hour}}))
	for i := range 60 {
		key := fmt.Sprintf("%02d", i)
		if _, err := a.c.Push(t.Context(), "q", []byte("x"), tarry.Key(key)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := a.c.Cancel(t.Context(), tarry.ByKey(key).Of("q")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := a.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(got, err)
		}
		if _, err := a.c.Settle(t.Context(), []engine.Settlement{{Token: got.Messages[0].Token, Do: engine.Ack}}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{"ending=acked": 40, "ending=cancelled": 20, "ending=expired": 0, "ending=cancelled&key_prefix=0": 4, "ending=acked&order=desc": 40} {
		for _, limit := range []int{1, 7, 100} {
			got := a.search(fmt.Sprintf("/v1/queues/q/messages?state=finished&%s&limit=%d", query, limit))
			if slices.Sort(got.keys); len(slices.Compact(got.keys)) != want || slices.Max(got.found) > limit {
				t.Errorf("%s by %d found %q", query, limit, got.keys)
			}
		}
	}
}

// Through many messages a search comes page by page, and says how far also when it finds none.
func TestSearchIsBounded(t *testing.T) {
	a := aBubble(t, memengine.New(nil))
	push := func(queue string, n int, opts ...tarry.PushOption) {
		t.Helper()
		for ms := slices.Repeat([]tarry.Draft{tarry.NewDraft(queue, nil, opts...)}, min(n, 10_000)); n > 0; n -= len(ms) {
			if _, err := a.c.PushMany(t.Context(), ms[:min(n, len(ms))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	push("big", 25_000, tarry.In(time.Hour))
	push("big", 1, tarry.In(2*time.Hour), tarry.Key("last"))
	for path, want := range map[string]string{"/v1/queues/big/messages?key_prefix=last": "big/last", "/v1/messages?key_prefix=last": "big/last"} {
		got := a.search(path)
		if !slices.Equal(got.keys, []string{want}) || len(got.read) < 3 {
			t.Errorf("%s found %q, and read %v", path, got.keys, got.read)
		}
		sum := 0
		for _, n := range got.read {
			if sum += n; n > 11_000 {
				t.Errorf("%s read %v", path, got.read)
			}
		}
		if sum != 25_001 {
			t.Errorf("%s read %d", path, sum)
		}
	}
	for i := range 2050 {
		push(fmt.Sprintf("q%04d", i), 1, tarry.Key("everywhere"))
	}
	if got := a.search("/v1/messages?key=everywhere&limit=1000"); len(got.keys) != 2050 || slices.Max(got.read) > 1000 {
		t.Errorf("a key was found %d times, and read were %v", len(got.keys), got.read)
	}
	if got := a.search("/v1/messages?key=nowhere"); len(got.keys) != 0 || len(got.read) < 3 || slices.Max(got.read) > 1000 {
		t.Errorf("an unknown key was found %d times, and read were %v", len(got.keys), got.read)
	}
	if got := a.search("/v1/messages?key=last"); len(got.keys) != 1 {
		t.Errorf("a key was found in %q", got.keys)
	}
}

// Large bodies make a page end early.
func TestSearchOfLargeBodies(t *testing.T) {
	a := aBubble(t, memengine.New(nil))
	for i := range 20 {
		if _, err := a.c.Push(t.Context(), "q", make([]byte, 1<<20), tarry.Key(fmt.Sprint("k", i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/v1/queues/q/messages?body=true&key_prefix=k", "/v1/queues/q/messages?state=ready&body=true&key_prefix=k", "/v1/messages?body=true&key_prefix=k"} {
		if got := a.search(path); len(got.keys) != 20 || slices.Max(got.found) > 9 {
			t.Errorf("%s found %d on pages of %v", path, len(got.keys), got.found)
		}
	}
}

// slowLists takes some time for each page.
type slowLists struct {
	*memengine.Engine
	pause time.Duration
	lists atomic.Int64
}

func (s *slowLists) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	s.lists.Add(1)
	time.Sleep(s.pause)
	return s.Engine.List(ctx, q)
}

// On a slow engine a search answers after a second, with what it has.
func TestSearchIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowLists{Engine: memengine.New(nil), pause: 500 * time.Millisecond}
		defer slow.Close()
		a := aBubble(t, slow)
		for _, q := range []string{"a", "b"} {
			if _, err := a.c.PushMany(t.Context(), slices.Repeat([]tarry.Draft{tarry.NewDraft(q, nil)}, 5000)); err != nil {
				t.Fatal(err)
			}
			if _, err := a.c.Push(t.Context(), q, nil, tarry.Key("k")); err != nil {
				t.Fatal(err)
			}
		}
		for path, want := range map[string]string{"/v1/messages?key_prefix=k": "[a/k b/k]", "/v1/queues/b/messages?key_prefix=k": "[b/k]"} {
			got := a.search(path)
			if fmt.Sprint(got.keys) != want || got.slowest > 1500*time.Millisecond || len(got.read) < 3 {
				t.Errorf("%s found %q on %d pages, the slowest in %s", path, got.keys, len(got.read), got.slowest)
			}
		}
	})
}

// However many searches are under way, a list does not wait for them.
func TestSearchesDelayNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowLists{Engine: memengine.New(nil), pause: 500 * time.Millisecond}
		defer slow.Close()
		a := aBubble(t, slow)
		if _, err := a.c.Push(t.Context(), "q", nil); err != nil {
			t.Fatal(err)
		}
		var searches sync.WaitGroup
		for i := range 50 {
			path := []string{"/v1/messages?key_prefix=k", "/v1/queues/q/messages?header=h"}[i%2]
			searches.Go(func() { a.call(200, "GET", path, "") })
		}
		synctest.Wait()
		began := time.Now()
		if got := a.call(200, "GET", "/v1/queues/q/messages?state=ready", ""); len(got["messages"].([]any)) != 1 || time.Since(began) > slow.pause {
			t.Errorf("a list took %s: %v", time.Since(began), got)
		}
		searches.Wait()
	})
}

// A search that all messages fit reads no more than a list; one that many fit reads one page
// again.
func TestSearchCostsAsAList(t *testing.T) {
	counted := &slowLists{Engine: memengine.New(nil)}
	defer counted.Close()
	a := aBubble(t, counted)
	var ms []tarry.Draft
	for i := range 5000 {
		ms = append(ms, tarry.NewDraft("q", nil, tarry.Key(fmt.Sprint("k", i)), tarry.Header("n", fmt.Sprint(i%3))))
	}
	if _, err := a.c.PushMany(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int64{"state=ready": 1, "state=ready&key_prefix=k": 1, "state=ready&header=n:1": 3, "key_prefix=k": 1} {
		counted.lists.Store(0)
		if got := a.call(200, "GET", "/v1/queues/q/messages?limit=500&"+query, ""); len(got["messages"].([]any)) != 500 || got["next"] == "" {
			t.Errorf("%s: %v", query, got)
		}
		if n := counted.lists.Load(); n > want {
			t.Errorf("%s took %d lists", query, n)
		}
	}
}

// A search in all queues finds a key, a prefix or a header in all of them, and in every state.
func TestSearchOfAllQueues(t *testing.T) {
	a := aStore(t, 20, "a", "b", "c.d+e/f")
	for query, want := range map[string]int{
		"key=b-003": 1, "key=b-0": 0, "key_prefix=b-0": 20, "key_prefix=a-000": 1, "header=tenant:1": 30, "header=a:b": 60, "header=tenant:1&key_prefix=a-": 10, "key_prefix=c": 20,
	} {
		for _, limit := range []int{1, 7, 100} {
			if got := a.search(fmt.Sprintf("/v1/messages?%s&limit=%d", query, limit)); len(got.keys) != want || slices.Max(got.found) > limit {
				t.Errorf("%s by %d found %q on pages of %v, want %d", query, limit, got.keys, got.found, want)
			}
		}
	}
	if _, err := a.c.Push(t.Context(), "a", nil, tarry.Key("gone"), tarry.Remember(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := a.c.Cancel(t.Context(), tarry.ByKey("gone").Of("a")); err != nil {
		t.Fatal(err)
	}
	got := a.call(200, "GET", "/v1/messages?key=gone", "")
	if field(t, got, "messages", 0, "ending") != "cancelled" || field(t, got, "messages", 0, "queue") != "a" || got["read"] != 3.0 || got["next"] != "" {
		t.Errorf("a cancelled message is found as %v", got)
	}
}

// What no search can be for is refused.
func TestSearchesThatAreRefused(t *testing.T) {
	a := aStore(t, 8, "q")
	long := strings.Repeat("k", 513)
	for path, want := range map[string]string{
		"/v1/queues/q/messages?key_prefix=":                "key_prefix: is empty; leave it out for all of them",
		"/v1/queues/q/messages?header=":                    "header: is empty; leave it out for all of them",
		"/v1/queues/q/messages?key_prefix=" + long:         "key_prefix: longer than 512 bytes",
		"/v1/queues/q/messages?ending=acked":               "ending: needs state=finished",
		"/v1/queues/q/messages?state=finished&header=h":    "header: finished messages have no headers",
		"/v1/queues/q/messages?state=finished&ending=sent": "ending: must be acked, cancelled or expired, not \"sent\"",
		"/v1/queues/q/messages?key_prefix=%ff":             "key_prefix: is not valid UTF-8",
		"/v1/queues/q/messages?header=%ff":                 "header: is not valid UTF-8",
		"/v1/queues/q/messages?key=k":                      "key: no such parameter",
		"/v1/queues/q/messages?key_prefix=a&after=x":       "after: must be the next of an earlier page",
		"/v1/messages":                                 "give key, key_prefix or header",
		"/v1/messages?key=":                            "key: is empty; leave it out for all of them",
		"/v1/messages?key=k&header=h":                  "key: cannot be combined with key_prefix or header",
		"/v1/messages?key_prefix=k&after=nonsense":     "after: must be the next of an earlier page",
		"/v1/messages?key=" + long:                     "key: longer than 512 bytes",
		"/v1/messages?key=k&limit=1001":                "limit: must be a whole number from 1 to 1000, not 1001",
		"/v1/messages?key_prefix=a&after=q+x":          "after: must be the next of an earlier page",
		"/v1/messages?key_prefix=a&after=q+ready:x":    "",
		"/v1/messages?key_prefix=a&after=no%0aq+dead:": "",
	} {
		w := a.send("GET", path, "")
		if code, message := checkError(t, w); w.Code != 400 || code != "invalid" || want != "" && message != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, message, want)
		}
	}
}

// failingPages fails to list one queue.
type failingPages struct{ *memengine.Engine }

func (f failingPages) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	if q.Queue == "b" {
		return engine.Page{}, errors.New("torn")
	}
	return f.Engine.List(ctx, q)
}

// listless is an engine that cannot list.
type listless struct{ *memengine.Engine }

func (l listless) Capabilities() engine.Capabilities {
	caps := l.Engine.Capabilities()
	caps.List, caps.Get = false, false
	return caps
}

// An engine that cannot list or fails makes a search fail.
func TestSearchThatFails(t *testing.T) {
	for _, c := range []struct {
		eng  engine.Engine
		code string
		path string
	}{
		{listless{memengine.New(nil)}, "unsupported", "/v1/queues/a/messages?key_prefix=k"},
		{listless{memengine.New(nil)}, "unsupported", "/v1/messages?key_prefix=k"},
		{listless{memengine.New(nil)}, "unsupported", "/v1/messages?key=k"},
		{failingPages{memengine.New(nil)}, "internal", "/v1/messages?key_prefix=k"},
	} {
		a := aBubble(t, c.eng)
		for _, q := range []string{"a", "b"} {
			a.call(201, "POST", "/v1/queues/"+q+"/messages", `{"key":"k"}`)
		}
		if code, _ := checkError(t, a.send("GET", c.path, "")); code != c.code {
			t.Errorf("%s: %s, want %s", c.path, code, c.code)
		}
	}
}
