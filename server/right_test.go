package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/apicheck"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
)

// guarded is a server with tokens, called without a network.
type guarded struct {
	*testing.T
	*Server
	file  access.File
	guard *access.Guard
	log   *bytes.Buffer
	audit *bytes.Buffer
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{T: t, file: access.File(filepath.Join(t.TempDir(), "tokens")), log: new(bytes.Buffer), audit: new(bytes.Buffer)}
	g.create("first", access.Admin, []string{"*"}, time.Time{})
	var err error
	audit := access.NewAudit(g.audit)
	g.guard, err = access.NewGuard(g.file, &access.GuardConfig{Logger: slog.New(slog.NewTextHandler(g.log, nil)), Audit: audit})
	if err != nil {
		t.Fatal(err)
	}
	trends := trend.New(&trend.Config{MaxQueues: 6})
	c := tarry.New(memengine.New(nil), &tarry.Config{Meter: trends.Meter()})
	g.Server = New(c, &Config{Guard: g.guard, Audit: audit, Trends: trends})
	t.Cleanup(func() {
		_ = c.Close()
		_ = c.Engine().Close()
	})
	return g
}

// create makes a token and returns what proves it.
func (g *guarded) create(name string, scopes access.Scope, queues []string, expires time.Time) string {
	g.Helper()
	_, secret, err := g.file.Create(access.Token{Name: name, Scopes: scopes, Queues: queues, Expires: expires}, time.Now())
	if err != nil {
		g.Fatal(err)
	}
	if g.guard != nil {
		g.guard.Refresh()
	}
	return secret
}

func (g *guarded) ask(secret, method, path, body string) *httptest.ResponseRecorder {
	g.Helper()
	r := httptest.NewRequestWithContext(g.Context(), method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := httptest.NewRecorder()
	check, err := checker()
	if err != nil {
		g.Fatal(err)
	}
	check.Handler(g, func(err error) { g.Error(err) }).ServeHTTP(w, r)
	return w
}

// checker holds what is taken and answered against the OpenAPI document.
var checker = sync.OnceValues(func() (*apicheck.Checker, error) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	return apicheck.New(New(c, nil).document())
})

// bodies are requests to the routes whose paths name no queue; %s is one. What is about
// all queues, or none, needs none.
var bodies = map[string]string{
	"POST /v1/messages":  `{"messages":[{"queue":"%s"}]}`,
	"POST /v1/cancel":    `{"refs":[{"queue":"%s","key":"k"}]}`,
	"POST /v1/lease":     `{"queues":["%s"]}`,
	"POST /v1/settle":    `{"settlements":[{"lease":"x","do":"ack"}]}`,
	"POST /v1/lease/end": `{"poll":"x"}`,
	"POST /v1/backup":    `{"name":"x"}`,

	"GET /v1/schedules":                 ``,
	"GET /v1/schedules/{name}":          ``,
	"PUT /v1/schedules/{name}":          `{"spec":"@daily","message":{"queue":"%s"}}`,
	"DELETE /v1/schedules/{name}":       ``,
	"POST /v1/schedules/{name}/pause":   ``,
	"POST /v1/schedules/{name}/resume":  ``,
	"POST /v1/schedules/{name}/trigger": ``,
	"GET /v1/schedules/{name}/next":     ``,
	"POST /v1/schedules/preview":        `{"spec":"@daily"}`,

	"GET /v1/queues":   ``,
	"GET /v1/messages": ``,
	"GET /v1/trends":   ``,
	"GET /v1/problems": ``,
	"GET /v1/workers":  ``,
	"GET /v1/intakes":  ``,
	"GET /v1/forecast": ``,
	"GET /v1/live":     ``,
	"GET /v1/info":     ``,
	"GET /v1/me":       ``,
}

// queueless are the routes that are about no queue that the request names.
var queueless = []string{"POST /v1/settle", "POST /v1/lease/end", "GET /v1/queues", "GET /v1/trends", "GET /v1/live", "GET /v1/messages", "GET /v1/problems", "GET /v1/workers", "GET /v1/intakes", "GET /v1/forecast", "GET /v1/info", "GET /v1/me", "GET /v1/schedules", "POST /v1/schedules/preview"}

// shown is a route as the docs write it.
func (e *route) shown() string {
	path := "/" + strings.Join(e.pattern, "/")
	name := "{id}"
	if strings.Contains(path, "/keys/") {
		name = "{key}"
	}
	path = strings.Replace(path, "schedules/*", "schedules/{name}", 1)
	return e.method + " " + strings.Replace(strings.Replace(path, "*", "{queue}", 1), "*", name, 1)
}

// Every route is asked with every scope, for a queue that the token is for and one that
// it is not for, with one that has expired, one that is wrong, and none.
func TestEveryRouteWithEveryScope(t *testing.T) {
	g := newGuarded(t)
	tokens := make(map[access.Scope]string)
	for _, name := range access.Known.Names() {
		scope, err := access.ParseScope(name)
		if err != nil {
			t.Fatal(err)
		}
		tokens[scope] = g.create(name, scope, []string{"mine.*", "other"}, time.Time{})
	}
	for i := range g.table {
		e := &g.table[i]
		at := e.shown()
		if e.scope == 0 {
			t.Errorf("%s: no scope is said", at)
		}
		body, known := bodies[at]
		if !e.ofQueue() && e.pattern[0] == "v1" && !known {
			t.Errorf("%s: bodies has no request to it", at)
			continue
		}
		ask := func(secret, queue string) *httptest.ResponseRecorder {
			if e.ofSchedule() && queue != tarry.ScheduleQueue { // one that pushes to the queue
				if _, err := g.c.SetSchedule(t.Context(), tarry.Schedule{Name: queue, Spec: "@hourly", Draft: tarry.NewDraft(queue, nil)}, ""); err != nil {
					t.Fatal(err)
				}
			}
			path := strings.NewReplacer("{queue}", queue, "{name}", queue, "{id}", "1", "{key}", "k").Replace(strings.TrimPrefix(at, e.method+" "))
			if at == "GET /v1/live" {
				path += "?overview=none" // wrong, else it would not end
			}
			if strings.Contains(body, "%s") {
				return g.ask(secret, e.method, path, fmt.Sprintf(body, queue))
			}
			return g.ask(secret, e.method, path, body)
		}
		if e.scope == access.Anyone {
			if w := ask("", "mine.q"); w.Code != 200 {
				t.Errorf("%s without a token: %d %s", at, w.Code, w.Body)
			}
			continue
		}
		for scope, secret := range tokens {
			may := scope == access.Admin || e.scope&scope != 0
			for queue, fits := range map[string]bool{"mine.q": true, "other": true, "theirs": false, "others": false, "tarry.schedules": false} {
				fits = fits || slices.Contains(queueless, at)
				if e.pattern[0] != "v1" {
					fits = e.scope == access.Known // else it is about all queues
				}
				if at == "POST /v1/backup" {
					fits = false // it is about all queues
				}
				if e.ofSchedule() && e.method != "PUT" && queue == tarry.ScheduleQueue {
					continue // no schedule pushes to it
				}
				w := ask(secret, queue)
				refused := w.Code == 403 && code(t, w.Body.Bytes()) == "forbidden" || strings.Contains(w.Body.String(), `"ok":false,"error":{"code":"forbidden"`) ||
					strings.Contains(w.Body.String(), `{"results":[{"error":{"code":"forbidden"`)
				if refused == (may && fits) || w.Code == 401 {
					t.Errorf("%s of %s with the scope %s: %d %s", at, queue, scope, w.Code, w.Body)
				}
			}
		}
	}
}

// Nothing but what needs no token is answered without one.
func TestEveryRouteWithoutAToken(t *testing.T) {
	g := newGuarded(t)
	past := time.Now().Add(-time.Hour)
	_, old, err := g.file.Create(access.Token{Name: "old", Scopes: access.Admin, Queues: []string{"*"}, Expires: past}, past.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	gone := g.create("gone", access.Admin, []string{"*"}, time.Time{})
	if _, err := g.file.Revoke("gone"); err != nil {
		t.Fatal(err)
	}
	g.guard.Refresh()
	good := g.create("good", access.Admin, []string{"*"}, time.Time{})
	asked, from := 0, 0
	for i := range g.table {
		e := &g.table[i]
		if e.scope == access.Anyone {
			continue
		}
		secrets := []string{"", gone}
		if asked == 0 {
			secrets = []string{"", "x", old, gone, good[:len(good)-1], good + "a", strings.ToUpper(good), "tarry_" + strings.Repeat("x", 1000)}
		}
		asked++
		for _, secret := range secrets {
			r := httptest.NewRequestWithContext(g.Context(), e.method, strings.ReplaceAll("/"+strings.Join(e.pattern, "/"), "*", "1"), nil)
			from++ // each of its own host: none is held up
			r.Host, r.RemoteAddr = "localhost", fmt.Sprintf("192.0.2.%d:1", from)
			if secret != "" {
				r.Header.Set("Authorization", "Bearer "+secret)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			if w.Code != 401 || code(t, w.Body.Bytes()) != "unauthorized" || w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: %d %s", e.shown(), secret, w.Code, w.Body)
			}
			for _, s := range []string{old, gone, good, good[:20]} {
				if strings.Contains(w.Body.String()+g.log.String(), s) {
					t.Fatalf("a token is told: %s %s", w.Body, g.log)
				}
			}
		}
	}
	if !strings.Contains(g.log.String(), `reason="a token is needed"`) || !strings.Contains(g.log.String(), `reason="the token old expired at`) {
		t.Errorf("logged was %s", g.log)
	}
	for _, header := range []string{"Basic " + good, "Bearer", good} {
		r := httptest.NewRequest("GET", "/v1/info", nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != 401 {
			t.Errorf("%q: %d", header, w.Code)
		}
	}
	if w := g.ask(good, "GET", "/v1/info", ""); w.Code != 200 {
		t.Errorf("the good one: %d", w.Code)
	}
}

func code(t *testing.T, body []byte) string {
	t.Helper()
	var answer struct{ Error struct{ Code string } }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Error.Code
}

// The table of scopes in the docs is that of the code.
func TestScopesInTheDocs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "docs", "operations", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var scopes []string
	calls := make(map[string][]string)
	s := New(tarry.New(memengine.New(nil), nil), nil)
	for i := range s.table {
		e := &s.table[i]
		scope := strings.ReplaceAll(e.scope.String(), ",", " or ")
		switch e.scope {
		case access.Anyone:
			scope = "none: no token is needed"
		case access.Known:
			scope = "any"
		}
		if calls[scope] == nil {
			scopes = append(scopes, scope)
		}
		calls[scope] = append(calls[scope], "`"+e.shown()+"`")
	}
	var want strings.Builder
	for _, scope := range scopes {
		fmt.Fprintf(&want, "| %s | %s |\n", scope, strings.Join(calls[scope], ", "))
	}
	if !strings.Contains(string(data), "|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/operations/security.md has not this table:\n%s", want.String())
	}
}

func TestBatchesOfSeveralQueues(t *testing.T) {
	g := newGuarded(t)
	pusher := g.create("pusher", access.Push, []string{"mine"}, time.Time{})
	worker := g.create("worker", access.Work, []string{"mine"}, time.Time{})
	const both = `{"messages":[{"queue":"mine","key":"k"},{"queue":"theirs"},{"queue":"mi!ne"}]}`
	w := g.ask(pusher, "POST", "/v1/messages", both)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `{"results":[{"outcome":"created"`) || !strings.Contains(w.Body.String(), `{"error":{"code":"forbidden","message":"the token pusher may not do this: it needs the scope push on theirs"`) ||
		!strings.Contains(w.Body.String(), `"failed":2`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask(pusher, "POST", "/v1/messages", both[:len(both)-1]+`,"atomic":true}`); w.Code != 403 || !strings.Contains(w.Body.String(), "messages[1]: ") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask(worker, "POST", "/v1/lease", `{"queues":["mine","theirs"],"wait":"1s"}`); w.Code != 403 || !strings.Contains(w.Body.String(), "on theirs") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask(pusher, "POST", "/v1/cancel", `{"refs":[{"queue":"theirs","key":"k"},{"queue":"mine","key":"k"}]}`); w.Code != 200 ||
		!strings.Contains(w.Body.String(), `"ok":false,"error":{"code":"forbidden"`) || !strings.Contains(w.Body.String(), `"key":"k","ok":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Who may see some queues pages through them, and their trends, as if there were no others.
func TestQueuesThatATokenSees(t *testing.T) {
	g := newGuarded(t)
	reader := g.create("reader", access.Read, []string{"b.*", "d", "_*"}, time.Time{})
	for _, q := range []string{"a", "b.1", "b.2", "c", "d", "e", "f"} {
		if _, err := g.c.PushDraft(t.Context(), tarry.NewDraft(q, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []string{"queues", "trends"} {
		if got := g.pages(reader, "/v1/"+of+"?limit=2"); got != "b.1 b.2 | d |" {
			t.Errorf("%s: %s", of, got)
		}
	}
	for queue, status := range map[string]int{"b.1": 200, "a": 403, "f": 403, trend.Other: 403} {
		if w := g.ask(reader, "GET", "/v1/queues/"+queue+"/trend", ""); w.Code != status {
			t.Errorf("the trend of %s: %d %s", queue, w.Code, w.Body)
		}
	}
	all := g.create("all", access.Read, []string{"*"}, time.Time{})
	if got := g.pages(all, "/v1/trends?limit=1000"); got != "_other a b.1 b.2 c d e |" {
		t.Errorf("all trends: %s", got)
	}
	if w := g.ask(all, "GET", "/v1/queues/"+trend.Other+"/trend", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"pushed":1`) {
		t.Errorf("the trend of all others: %d %s", w.Code, w.Body)
	}
}

// Who may see some queues is told what falls due in them, and nothing because of others.
func TestForecastOfManyQueuesThatATokenSees(t *testing.T) {
	g := newGuarded(t)
	push := func(queue string, in time.Duration) {
		t.Helper()
		if _, err := g.c.Push(t.Context(), queue, nil, tarry.In(in)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range wire.MaxAhead - 1 {
		push(fmt.Sprint("theirs.", n), 10*time.Minute)
	}
	push("theirs.crowded", 20*time.Minute)
	push("crowded", 20*time.Minute+time.Second)
	push("soon", 5*time.Minute)
	push("tomorrow", 24*time.Hour)
	push("ready", 0)
	for queue, want := range map[string]string{
		"*":        "500 queues, 500 messages, more: true, from: true",
		"theirs.*": "499 queues, 499 messages, more: true, from: true",
		"soon":     "1 queues, 1 messages, more: false, from: true",
		"crowded":  "0 queues, 0 messages, more: true, from: true",
		"tomorrow": "0 queues, 0 messages, more: false, from: true",
		"ready":    "0 queues, 0 messages, more: false, from: false",
		"none":     "0 queues, 0 messages, more: false, from: false",
	} {
		w := g.ask(g.create("of."+strings.Trim(queue, ".*"), access.Read, []string{queue}, time.Time{}), "GET", "/v1/forecast", "")
		var f wire.Forecasts
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != 200 {
			t.Fatal(w.Code, w.Body, err)
		}
		sum := int64(0)
		for _, n := range f.Counts {
			sum += n
		}
		if got := fmt.Sprintf("%d queues, %d messages, more: %v, from: %v", len(f.Queues), sum, f.More, !f.From.IsZero()); got != want {
			t.Errorf("of %s: %s, want %s", queue, got, want)
		}
	}
}

// pages are the queues that a path lists, with a bar behind each page.
func (g *guarded) pages(secret, path string) string {
	var seen []string
	for after, pages := "", 0; pages < 9; pages++ {
		w := g.ask(secret, "GET", path+"&after="+after, "")
		var page struct {
			Queues []struct{ Queue string }
			Next   string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
			g.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, q := range page.Queues {
			seen = append(seen, q.Queue)
		}
		seen = append(seen, "|")
		if after = page.Next; after == "" {
			break
		}
	}
	return strings.Join(seen, " ")
}

// A poll that waits when its token is revoked brings nothing.
func TestPollsOfARevokedToken(t *testing.T) {
	g := newGuarded(t)
	worker := g.create("worker", access.Work, []string{"q"}, time.Time{})
	other := g.create("other", access.Work, []string{"q"}, time.Time{})
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		done <- g.ask(worker, "POST", "/v1/lease", `{"queues":["q"],"wait":"30s","keep":true,"poll":"p"}`)
	}()
	for g.waits.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if w := g.ask(other, "POST", "/v1/lease/end", `{"poll":"p"}`); w.Body.String() != `{"count":0}` {
		t.Errorf("another token ended the poll: %s", w.Body)
	}
	if _, err := g.file.Revoke("worker"); err != nil {
		t.Fatal(err)
	}
	g.guard.Refresh()
	if _, err := g.c.PushDraft(t.Context(), tarry.NewDraft("q", nil)); err != nil {
		t.Fatal(err)
	}
	if w := <-done; w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if q, err := g.c.Queue(t.Context(), "q"); err != nil || q.Ready != 1 {
		t.Errorf("%+v, %v", q, err)
	}
}

// A set of queues is of use to the token alone that named them.
func TestSetsOfAToken(t *testing.T) {
	g := newGuarded(t)
	mine := g.create("mine", access.Work, []string{"mine"}, time.Time{})
	theirs := g.create("theirs", access.Work, []string{"theirs"}, time.Time{})
	w := g.ask(mine, "POST", "/v1/lease", `{"queues":["mine"],"wait":"1ms","keep":true}`)
	var got struct{ Set string }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Set == "" {
		t.Fatal(w.Body)
	}
	poll := `{"set":"` + got.Set + `","wait":"1ms"}`
	if w := g.ask(theirs, "POST", "/v1/lease", poll); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask(mine, "POST", "/v1/lease", poll); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	g.create("new", access.Read, []string{"*"}, time.Time{})
	if w := g.ask(mine, "POST", "/v1/lease", poll); w.Code != 404 {
		t.Errorf("after the tokens were read again: %d %s", w.Code, w.Body)
	}
}

func TestCancelsAreUnderTheNameOfTheToken(t *testing.T) {
	g := newGuarded(t)
	ctx := t.Context()
	if _, err := g.c.Configure(ctx, "q", tarry.Settings{History: time.Hour}, ""); err != nil {
		t.Fatal(err)
	}
	ann, bob := g.create("ann", access.Push, []string{"q"}, time.Time{}), g.create("bob", access.Operate, []string{"q"}, time.Time{})
	for _, x := range []struct{ secret, method, path, body, by string }{
		{ann, "DELETE", "/v1/queues/q/keys/k", "", "ann"},
		{bob, "DELETE", "/v1/queues/q/messages/ID", "", "bob"},
		{ann, "POST", "/v1/cancel", `{"refs":[{"queue":"other","key":"k"},{"queue":"q","key":"k"}]}`, "ann"},
	} {
		p, err := g.c.Push(ctx, "q", nil, tarry.Key("k"), tarry.In(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if w := g.ask(x.secret, x.method, strings.Replace(x.path, "ID", p.ID.String(), 1), x.body); w.Code >= 300 {
			t.Fatalf("%s %s: %d %s", x.method, x.path, w.Code, w.Body)
		}
		if i, err := g.c.Get(ctx, tarry.ByID(p.ID).Of("q")); err != nil || i.Ending != tarry.WasCancelled || i.Worker != x.by {
			t.Errorf("%s %s by %s: by %q, %v", x.method, x.path, x.by, i.Worker, err)
		}
	}
}

func TestAudit(t *testing.T) {
	g := newGuarded(t)
	operator := g.create("ann", access.Operate, []string{"q"}, time.Time{})
	pusher := g.create("shop", access.Push, []string{"q"}, time.Time{})
	g.audit.Reset()
	for _, call := range []struct{ secret, method, path, body, want string }{
		{pusher, "POST", "/v1/queues/q/messages", `{"key":"k"}`, ``},
		{pusher, "POST", "/v1/queues/q/messages", `{"key":"l"}`, ``},
		{pusher, "DELETE", "/v1/queues/q/keys/k", ``, ``},
		{"", "POST", "/v1/queues/q/purge", ``, ``},
		{operator, "POST", "/v1/queues/q/pause", ``, `{"what":"pause","who":"ann","queue":"q","count":1,"from":"192.0.2.1","result":"ok"}`},
		{operator, "POST", "/v1/queues/q/resume", ``, `{"what":"resume","who":"ann","queue":"q","count":1,"from":"192.0.2.1","result":"ok"}`},
		{operator, "POST", "/v1/queues/q/redrive", ``, `{"what":"redrive","who":"ann","queue":"q","count":0,"from":"192.0.2.1","result":"ok"}`},
		{operator, "PUT", "/v1/queues/q/settings", `{"settings":{"ttr":"5s"}}`, `{"what":"settings","who":"ann","queue":"q","revision":"1","from":"192.0.2.1","result":"ok"}`},
		{operator, "POST", "/v1/queues/q/purge", `{"dead":1}`, `{"what":"purge","who":"ann","queue":"q","from":"192.0.2.1","result":"invalid","error":"dead: must be true or false, not a number"}`},
		{operator, "POST", "/v1/cancel", `{"refs":[{"queue":"q","key":"l"},{"queue":"q","key":"m"}]}`, `{"what":"cancel","who":"ann","queues":["q"],"count":1,"from":"192.0.2.1","result":"ok"}`},
		{operator, "POST", "/v1/cancel", `{"refs":[{"queue":"theirs","key":"a"},{"queue":"theirs","key":"b"}]}`, `{"what":"cancel","who":"ann","queues":null,"count":0,"forbidden":["theirs"],"from":"192.0.2.1","result":"ok"}`},
		{operator, "DELETE", "/v1/queues/q/keys/l", ``, `{"what":"cancel","who":"ann","queue":"q","message":"l","from":"192.0.2.1","result":"not_found","error":"cancel q key \"l\": not found"}`},
		{pusher, "POST", "/v1/queues/q/purge", ``, `{"what":"purge","who":"shop","queue":"q","from":"192.0.2.1","result":"forbidden","error":"the token shop may not do this: it needs the scope operate on q"}`},
	} {
		w := g.ask(call.secret, call.method, call.path, call.body)
		line := g.audit.String()
		g.audit.Reset()
		if call.want == "" {
			if line != "" {
				t.Errorf("%s %s: %s", call.method, call.path, line)
			}
			continue
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || strings.Count(line, "\n") != 1 {
			t.Fatalf("%s %s: %q, %v: %s", call.method, call.path, line, err, w.Body)
		}
		if got["time"] == nil || got["token_id"] == nil {
			t.Errorf("%s: %s", call.path, line)
		}
		delete(got, "time")
		delete(got, "token_id")
		var want map[string]any
		if err := json.Unmarshal([]byte(call.want), &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %s:\n%v\nwant\n%v", call.method, call.path, got, want)
		}
	}
	if _, err := g.file.Revoke("shop"); err != nil {
		t.Fatal(err)
	}
	g.guard.Refresh()
	if line := g.audit.String(); !strings.Contains(line, `"what":"token revoke","token":"shop"`) || !strings.Contains(line, `"scopes":["push"],"queues":["q"]`) {
		t.Errorf("of a token that went: %s", line)
	}
}

// Whoever has a token can ask what it may do; where none is needed that is everything.
// Who has a token, but not for this, does not fill the log by trying, nor by long names.
func TestAuditOfWhatIsNotAllowed(t *testing.T) {
	g := newGuarded(t)
	pusher := g.create("shop", access.Push, []string{"q"}, time.Time{})
	operator := g.create("ann", access.Operate, []string{"q"}, time.Time{})
	for _, call := range []struct{ secret, method, path, body string }{
		{pusher, "POST", "/v1/queues/" + strings.Repeat("q", 20_000) + "/purge", ""},
		{operator, "POST", "/v1/cancel", `{"refs":[{"queue":"theirs","key":"k"}]}`},
	} {
		g.audit.Reset()
		for range 50 {
			g.ask(call.secret, call.method, call.path, call.body)
		}
		if n, size := strings.Count(g.audit.String(), "\n"), g.audit.Len(); n < 10 || n > 20 || size > 10_000 {
			t.Errorf("%s %.40s: %d lines, %d bytes", call.method, call.path, n, size)
		}
	}
	g.audit.Reset()
	for range 50 {
		g.ask(operator, "POST", "/v1/queues/q/pause", "")
	}
	if n := strings.Count(g.audit.String(), "\n"); n != 50 {
		t.Errorf("%d lines of 50 about what was done", n)
	}
	g.audit.Reset()
	g.cfg.Audit.Close()
	if s := g.audit.String(); strings.Count(s, `"what":"refusals left out"`) != 1 {
		t.Errorf("what was left out is told by %s", s)
	}
}

func TestMe(t *testing.T) {
	g := newGuarded(t)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	secret := g.create("ann", access.Read|access.Operate, []string{"mail", "order.*"}, until)
	want := `{"name":"ann","scopes":["read","operate"],"queues":["mail","order.*"],"expires":"` + until.Format("2006-01-02T15:04:05.000Z") + `"}`
	if w := g.ask(secret, "GET", "/v1/me", ""); w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	g.cfg.Guard = nil
	want = `{"name":"","scopes":["admin"],"queues":["*","tarry.*"],"expires":null}`
	if w := g.ask("", "GET", "/v1/me", ""); w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	if w := g.ask("", "GET", "/v1/me?x=1", ""); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A token is told of the problems of the queues that it may read, and of no others.
func TestProblemsThatATokenSees(t *testing.T) {
	g := newGuarded(t)
	for _, q := range []string{"mine", "theirs"} {
		if _, err := g.c.PushDraft(t.Context(), tarry.NewDraft(q, nil, tarry.At(time.Now().Add(-time.Hour)))); err != nil {
			t.Fatal(err)
		}
	}
	reader := g.create("reader", access.Read, []string{"mine"}, time.Time{})
	pusher := g.create("pusher", access.Push, []string{"mine"}, time.Time{})
	for _, c := range []struct {
		token, path, has, lacks string
		status                  int
	}{
		{reader, "/v1/problems", `"queue":"mine"`, "theirs", 200},
		{reader, "/v1/problems?late=1s", `"queue":"mine"`, "theirs", 200},
		{reader, "/readyz", `"queue":"mine"`, "theirs", 200},
		{pusher, "/readyz", `{"status":"ready"}`, "mine", 200},
		{"", "/readyz", `{"status":"ready"}`, "mine", 200},
		{pusher, "/v1/problems", "forbidden", "theirs", 403},
	} {
		if w := g.ask(c.token, "GET", c.path, ""); w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || strings.Contains(w.Body.String(), c.lacks) {
			t.Errorf("%s: %d %s, want %s and no %s", c.path, w.Code, w.Body, c.has, c.lacks)
		}
	}
}

// A token is told what falls due in the queues that it may read, and the sum is theirs.
func TestForecastThatATokenSees(t *testing.T) {
	g := newGuarded(t)
	for _, q := range []string{"mine", "theirs"} {
		if _, err := g.c.PushDraft(t.Context(), tarry.NewDraft(q, nil, tarry.In(30*time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		queues []string
		shown  int
	}{{[]string{"mine"}, 1}, {[]string{"*"}, 2}, {[]string{"others"}, 0}} {
		token := g.create(fmt.Sprint("reader", c.shown), access.Read, c.queues, time.Time{})
		var f struct {
			Counts []int
			Queues []struct{ Queue string }
		}
		w := g.ask(token, "GET", "/v1/forecast", "")
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range f.Counts {
			sum += n
		}
		if w.Code != 200 || len(f.Queues) != c.shown || sum != c.shown {
			t.Errorf("who may read %v sees %s", c.queues, w.Body)
		}
	}
}
