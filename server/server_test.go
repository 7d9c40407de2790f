package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/trend"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// api is a server under test, called without a network.
type api struct {
	testing.TB
	clock *enginetest.Clock
	c     *tarry.Client
	s     *server.Watched
}

func newAPI(t testing.TB) *api {
	clock := enginetest.NewClock() // 2030-03-01T12:00:00Z
	eng := memengine.New(&memengine.Config{Now: clock.Now, MaxPending: 1000})
	trends := trend.New(&trend.Config{Now: clock.Now})
	c := tarry.New(eng, &tarry.Config{MaxBody: 1000, Meter: trends.Meter()})
	t.Cleanup(func() {
		_ = c.Close()
		_ = eng.Close()
	})
	return &api{t, clock, c, newServer(t, c, &server.Config{Version: "1.2.3", MaxRequest: 10_000, Trends: trends})}
}

func (a *api) send(method, path, body string) *httptest.ResponseRecorder {
	a.Helper()
	r := httptest.NewRequestWithContext(a.Context(), method, path, strings.NewReader(body))
	r.Host = "localhost:8277"
	if method != "GET" && method != "DELETE" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	a.s.ServeHTTP(w, r)
	return w
}

// call sends a request and returns its answer; the status must be as wanted, and an
// error of the one shape.
func (a *api) call(status int, method, path, body string) map[string]any {
	a.Helper()
	w := a.send(method, path, body)
	if w.Code != status {
		a.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	var answer map[string]any
	if w.Code == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		a.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
	}
	if status >= 400 {
		checkError(a, w)
	}
	return answer
}

// checkError wants the one shape of errors, and returns code and message.
func checkError(t testing.TB, w *httptest.ResponseRecorder) (code, message string) {
	t.Helper()
	var answer map[string]map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("status %d: not an error: %v: %s", w.Code, err, w.Body)
	}
	e := answer["error"]
	code, _ = e["code"].(string)
	message, _ = e["message"].(string)
	_, hint := e["hint"].(string)
	fields := 3
	if _, live := e["state"]; live {
		fields = 8 // with what is in the way of a push
	}
	if _, until := e["until"]; until {
		fields++
	}
	if len(answer) != 1 || len(e) != fields || code == "" || message == "" || !hint || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d: not the shape of an error: %s", w.Code, w.Body)
	}
	return code, message
}

func field(t testing.TB, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func TestBadRequests(t *testing.T) {
	a := newAPI(t)
	const push, lease = "/v1/queues/q/messages", "/v1/lease"
	for _, c := range []struct {
		status                int
		method, path, body    string
		code, messageContains string
	}{
		{400, "POST", push, ``, "invalid", "malformed JSON"},
		{400, "POST", push, `{"body":1}}`, "invalid", "malformed JSON"},
		{400, "POST", push, `{"body":1} {}`, "invalid", "something behind"},
		{400, "POST", push, `{"body":01}`, "invalid", "malformed JSON"},
		{400, "POST", push, "{\"key\":\"\xff\"}", "invalid", "malformed JSON"},
		{400, "POST", push, `null`, "invalid", "request: must be an object, not null"},
		{400, "POST", push, `{"Body":1}`, "invalid", "Body: no such field"},
		{400, "POST", push, `{"key":"a","key":"b"}`, "invalid", "key: given twice"},
		{400, "POST", push, `{"key":"a","k\u0065y":"b"}`, "invalid", "key: given twice"},
		{400, "POST", push, `{"queue":"q"}`, "invalid", "queue: stands in the path"},
		{400, "POST", push, `{"body":1,"body_base64":""}`, "invalid", "body: "},
		{400, "POST", push, `{"body_base64":"&"}`, "invalid", "body_base64: "},
		{400, "POST", push, `{"body_base64":7}`, "invalid", "body_base64: must be a string, not a number"},
		{400, "POST", push, `{"delay":"1h","due":"2031-01-01T00:00:00Z"}`, "invalid", "delay: "},
		{400, "POST", push, `{"delay":"999999999999h"}`, "invalid", `delay: "999999999999h" is out of range: a duration is at most 106751d`},
		{400, "POST", push, `{"backoff":["1s","106752d"]}`, "invalid", `backoff[1]: "106752d" is out of range`},
		{400, "POST", push, `{"remember":"999999999999h"}`, "invalid", "remember: 999999999999h is outside 0s to 87600h"},
		{400, "POST", push, `{"delay":"-1s"}`, "invalid", "delay: -1s is negative"},
		{400, "POST", push, `{"due":"tomorrow"}`, "invalid", "due: "},
		{400, "POST", push, `{"due":"10000-01-01T00:00:00Z"}`, "invalid", "due: "},
		{400, "POST", push, `{"key":""}`, "invalid", "key: is empty"},
		{400, "POST", push, `{"key":[null]}`, "invalid", "key: must be a string, not an array"},
		{400, "POST", push, `{"key":".."}`, "invalid", "key"},
		{400, "POST", push, `{"key":"` + strings.Repeat("k", 513) + `"}`, "invalid", "513 bytes"},
		{400, "POST", push, `{"priority":-1}`, "invalid", "priority: "},
		{400, "POST", push, `{"priority":4294967296}`, "invalid", "priority: "},
		{400, "POST", push, `{"priority":1.5}`, "invalid", "priority: "},
		{400, "POST", push, `{"priority":"1"}`, "invalid", "priority: must be a number, not a string"},
		{400, "POST", push, `{"max_attempts":0}`, "invalid", "max_attempts"},
		{400, "POST", push, `{"headers":{"a":1}}`, "invalid", "headers.a: must be a string"},
		{400, "POST", push, `{"headers":{"a":"1","a":"2"}}`, "invalid", "headers: a is given twice"},
		{400, "POST", push, `{"backoff":"1s"}`, "invalid", "backoff: must be an array"},
		{400, "POST", push, `{"backoff":["1s",2]}`, "invalid", "backoff[1]: "},
		{400, "POST", push, `{"ttr":"0s"}`, "invalid", "ttr: "},
		{400, "POST", push, `{"ttr":"25h"}`, "invalid", "ttr: "},
		{400, "POST", push, `{"on_conflict":"maybe"}`, "invalid", "on_conflict: "},
		{400, "POST", push, `{"on_conflict":"rearm"}`, "invalid", "key"},
		{413, "POST", push, `{"body":"` + strings.Repeat("x", 1000) + `"}`, "too_large", "too large"},
		{413, "POST", push, `{"body":"` + strings.Repeat("x", 10_000) + `"}`, "too_large", "10000 bytes"},
		{400, "POST", "/v1/queues/-q/messages", `{}`, "invalid", "begin with -"},
		{400, "POST", "/v1/queues/a%20b/messages", `{}`, "invalid", "byte 2"},
		{400, "POST", "/v1/queues/" + strings.Repeat("q", 201) + "/messages", `{}`, "invalid", "201 bytes"},
		{400, "POST", "/v1/messages", `{"messages":{}}`, "invalid", "messages: must be an array"},
		{400, "POST", "/v1/messages", `{"messages":[],"atomic":1}`, "invalid", "atomic: "},
		{400, "POST", lease, `{}`, "invalid", "queues: "},
		{400, "POST", lease, `{"queues":["q"],"max":1001}`, "invalid", "max: must be a whole number from 1 to 1000, not 1001"},
		{400, "POST", lease, `{"queues":["q"],"wait":"999999999999h"}`, "invalid", "wait: 999999999999h is outside 0s to 1m"},
		{400, "POST", lease, `{"queues":["q"],"wait":"-1s"}`, "invalid", "wait: "},
		{400, "POST", lease, `{"queues":["q"],"ttr":"1us"}`, "invalid", "ttr: "},
		{400, "POST", lease, `{"queues":["q"],"ttr":"24h1ms"}`, "invalid", "ttr: "},
		{400, "POST", lease, `{"queues":["q"` + strings.Repeat(`,"q"`, 100) + `]}`, "invalid", "queues: more than 100 entries without a wait"},
		{400, "POST", lease, `{"queues":"q"}`, "invalid", "queues: must be an array"},
		{400, "POST", lease, `{"queues":[""]}`, "invalid", "no name"},
		{400, "POST", "/v1/cancel", `{}`, "invalid", "refs: is missing"},
		{400, "GET", push + "?limit=0", ``, "invalid", "limit: "},
		{400, "GET", push + "?body=1", ``, "invalid", "body: "},
		{400, "GET", push + "?nope=1", ``, "invalid", "nope: no such parameter"},
		{400, "GET", push + "?state=dead&state=dead", ``, "invalid", "state: given twice"},
		{400, "GET", push + "?limit=null", ``, "invalid", "limit: "},
		{400, "GET", push + "?limit=+5", ``, "invalid", "limit: "},
		{400, "GET", "/v1/queues/q/forecast?step=1s", ``, "invalid", "minutes"},
		{400, "GET", "/v1/queues/q/forecast?span=999999999999h", ``, "invalid", `span: "999999999999h" is out of range: a duration is at most`},
		{400, "POST", "/v1/queues/q/pause", `{"for":"0s"}`, "invalid", "for: "},
		{400, "POST", "/v1/queues/q/resume", `{"x":1}`, "invalid", "x: no such field"},
		{400, "POST", "/v1/queues/q/redrive", `{"ids":["x"]}`, "invalid", "ids[0]: "},
		{404, "GET", "/v2", ``, "not_found", "/v2"},
	} {
		w := a.send(c.method, c.path, c.body)
		if w.Code != c.status {
			t.Errorf("%s %s %.60s: status %d, want %d: %s", c.method, c.path, c.body, w.Code, c.status, w.Body)
			continue
		}
		if code, message := checkError(t, w); code != c.code || !strings.Contains(message, c.messageContains) {
			t.Errorf("%s %s %.60s: %s, %q; want %s with %q", c.method, c.path, c.body, code, message, c.code, c.messageContains)
		}
	}
	if q := a.call(200, "GET", "/v1/queues", ""); len(q["queues"].([]any)) != 0 {
		t.Errorf("something was kept: %v", q)
	}
}

// Who wrote a slash of a name as it is hears how it is written.
func TestSlashesInPaths(t *testing.T) {
	a := newAPI(t)
	const slashHint = "a queue, key or schedule in a path is percent-encoded: / is %2F"
	for path, want := range map[string]string{
		"/v1/queues/a/b":              slashHint,
		"/v1/queues/a/b/messages":     slashHint,
		"/v1/queues/q/keys/a/b":       slashHint,
		"/v1/queues/q/keys/a/b/c/d/e": slashHint,
		"/v1/queues/q/keys/a//b":      slashHint,
		"/v1/nope":                    "a queue is at /v1/queues/{queue}, its messages at /v1/queues/{queue}/messages; GET /openapi.json tells all paths",
		"/v2/queues/a/b":              "the paths of the API begin with /v1/",
	} {
		if got := field(t, a.call(404, "GET", path, ""), "error", "hint"); got != want {
			t.Errorf("%s: the hint is %v, want %s", path, got, want)
		}
	}
	a.call(201, "PUT", "/v1/queues/a%2Fb/keys/c%2Fd", `{}`)
	a.call(200, "GET", "/v1/queues/a%2Fb/keys/c%2Fd", "")
}

// Whose JSON is cut off, by himself or on its way, hears what to send.
func TestCutOffRequests(t *testing.T) {
	a := newAPI(t)
	for name, c := range map[string]struct {
		body io.Reader
		hint string
	}{
		"nothing":   {strings.NewReader(""), "send one whole JSON object"},
		"a part":    {strings.NewReader(`{"body":{"to":"an`), "send one whole JSON object"},
		"broke off": {io.MultiReader(strings.NewReader(`{"body"`), iotest.ErrReader(io.ErrUnexpectedEOF)), "nothing was done; send as many bytes as"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/queues/q/messages", c.body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.s.ServeHTTP(w, r)
		if code, _ := checkError(t, w); w.Code != 400 || code != "invalid" || !strings.Contains(w.Body.String(), `"hint":"`+c.hint) {
			t.Errorf("%s: %d %s, want the hint %q", name, w.Code, w.Body, c.hint)
		}
	}
}

// What a form or a beacon of a web page can send without being asked is refused even from a
// browser that does not say where the page came from.
func TestMediaTypes(t *testing.T) {
	a := newAPI(t)
	for contentType, want := range map[string]int{
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/jsonx": 415, "multipart/form-data; boundary=x": 415,
		"text/plain; application/json": 415, "text/plain, application/json": 415, "text/plain;charset=application/json": 415,
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON": 201,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1:8277/v1/queues/q/messages", strings.NewReader("{}"))
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		if a.s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("Content-Type %q: %d, want %d", contentType, w.Code, want)
		}
		if want == 415 {
			checkError(t, w)
		}
	}
	if q := a.call(200, "GET", "/v1/queues/q", ""); q["ready"] != 3.0 {
		t.Errorf("%v", q)
	}
}

func TestLimitReached(t *testing.T) {
	a := newAPI(t)
	body := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"queue":"q"},`, 500), ",") + `]}`
	a.call(200, "POST", "/v1/messages", body)
	a.call(200, "POST", "/v1/messages", body)
	w := a.send("POST", "/v1/queues/q/messages", `{}`)
	if code, _ := checkError(t, w); w.Code != 429 || code != "limit" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Whatever a key holds, its path finds it, without a redirect.
func TestNastyKeys(t *testing.T) {
	a := newAPI(t)
	for _, key := range []string{
		"a/b", "/", "//", "/../x", "../..", "...", "a b", " ", "ü€𝄞", "%2F", "%", "?a=b&c", "#", "a;b", "+", "\\", "\x00", "\n", "claim", "{key}", "a//b/", "./a", "a/.",
	} {
		path := "/v1/queues/" + url.PathEscape("q/;+$()") + "/keys/" + url.PathEscape(key)
		a.call(201, "PUT", path, `{"delay":"1h"}`)
		if m := a.call(200, "GET", path, ""); m["key"] != key || m["queue"] != "q/;+$()" {
			t.Errorf("key %q: %v", key, m)
		}
		a.call(200, "PATCH", path, `{"delay":"0s"}`)
		a.call(200, "POST", path+"/claim", "")
		a.call(409, "DELETE", path, "")
	}
	a.call(201, "PUT", "/v1/queues/%2F/keys/%2f", `{}`)
	if m := a.call(200, "GET", "/v1/queues/%2F/keys/%2F", ""); m["queue"] != "/" || m["key"] != "/" {
		t.Errorf("%v", m)
	}
	a.call(200, "GET", "/v1/queues/%2F", "")
	a.call(400, "GET", "/v1/queues/q/keys/%FF%2F", "")
	a.call(400, "GET", "/v1/queues/q/keys/%2E%2E", "")
	a.call(400, "GET", "/v1/queues/q/keys/%2E", "")
}

func TestMaxHeader(t *testing.T) {
	a := newAPI(t)
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", nil)
	r.Header.Set("X", strings.Repeat("x", 70_000))
	w := httptest.NewRecorder()
	if a.s.ServeHTTP(w, r); w.Code != 431 {
		t.Errorf("status %d", w.Code)
	}
	checkError(t, w)
}

// broken is a client that has gone: nothing can be written to it.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// unsent is an answer of which writing tells nothing: what cannot be sent shows when it is flushed.
type unsent struct{ *httptest.ResponseRecorder }

func (unsent) FlushError() error { return io.ErrClosedPipe }

// wrapped is the writer of somebody who looks at answers on their way.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestLeaseOfAClientGoneIsReleased(t *testing.T) {
	a := newAPI(t)
	a.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
	for path, body := range map[string]string{
		"/v1/lease": `{"queues":["q"]}`, "/v1/queues/q/keys/k/claim": `{}`, "/v1/lease?": `{"queues":["q"],"wait":"10s"}`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for _, w := range []http.ResponseWriter{broken{httptest.NewRecorder()}, unsent{httptest.NewRecorder()}, wrapped{unsent{httptest.NewRecorder()}}} {
			r.Body = io.NopCloser(strings.NewReader(body))
			a.s.Server.ServeHTTP(w, r)
			if m := a.call(200, "GET", "/v1/queues/q/keys/k", ""); m["state"] != "ready" || m["attempt"] != 0.0 {
				t.Errorf("%s to a %T: %v", path, w, m)
			}
		}
	}
}

func TestErrorsOfTheEngine(t *testing.T) {
	for err, want := range map[error]int{
		engine.ErrNoSpace: 507, engine.ErrLimit: 429, engine.ErrUnavailable: 503, engine.ErrClosed: 503, io.ErrUnexpectedEOF: 500,
		engine.ErrUnsupported: 501, engine.ErrForbidden: 403, engine.ErrUnauthorized: 401,
	} {
		c := tarry.New(failing{memengine.New(nil), err}, nil)
		s := newServer(t, c, nil)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/queues/q/messages", strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%v: status %d, want %d", err, w.Code, want)
		}
		checkError(t, w)
		_ = c.Close()
	}
}
