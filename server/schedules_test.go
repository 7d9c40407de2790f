package server_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// newScheduled is a server on an empty store in memory, by the clock of a bubble.
func newScheduled(t *testing.T) *api {
	t.Helper()
	c := tarry.New(memengine.New(nil), &tarry.Config{MaxBody: 1000})
	t.Cleanup(func() { _ = c.Close() })
	return &api{TB: t, c: c, s: newServer(t, c, &server.Config{MaxRequest: 10_000})}
}

// run runs the schedules of the store until the function returned is called.
func (a *api) run() (stop func()) {
	ctx, cancel := context.WithCancel(a.Context())
	ended := make(chan error, 1)
	go func() { ended <- tarry.NewWorker(a.c, &tarry.WorkerConfig{Schedules: true}).Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			a.Error(err)
		}
	}
}

// What is wrong with a schedule is said by name, with the right status, and nothing is stored.
func TestBadSchedules(t *testing.T) {
	a := newScheduled(t)
	const put, message = "PUT /v1/schedules/s", `"message":{"queue":"q"}`
	with := func(more string) string { return `{"spec":"@daily",` + message + `,` + more + `}` }
	within := func(more string) string { return `{"spec":"@daily","message":{"queue":"q",` + more + `}}` }
	for _, c := range []struct {
		request, body string
		status        int
		says          string
	}{
		{put, `{}`, 400, "spec: is missing"},
		{put, `{"spec":"@daily"}`, 400, "message: is missing"},
		{put, `{"spec":"@daily","message":{"body":1}}`, 400, "queue: is missing"},
		{put, `{"spec":"@daily","message":{"queue":"-q"}}`, 400, "queue"},
		{put, `{"spec":"@daily","message":{"queue":"tarry.schedules"}}`, 400, "is for schedules themselves"},
		{put, `{"spec":7,` + message + `}`, 400, "spec: must be a string, not a number"},
		{put, `{"spec":"0 0 30 2 *",` + message + `}`, 400, "never"},
		{put, `{"spec":"@every 1ms",` + message + `}`, 400, "1s"},
		{put, `{"spec":"nonsense",` + message + `}`, 400, "nonsense"},
		{put, `{"spec":"` + strings.Repeat("0,", 200) + `0 * * * *",` + message + `}`, 400, "200"},
		{put, with(`"zone":"Mars/Olympus"`), 400, "Mars/Olympus"},
		{put, with(`"jitter":"25h"`), 400, "jitter: 25h is outside 0s to 24h"},
		{put, with(`"jitter":60`), 400, "jitter: must be a string, not a number"},
		{put, with(`"catch_up":"some"`), 400, `catch_up: must be last, skip or all, not "some"`},
		{put, with(`"start":"tomorrow"`), 400, `start: "tomorrow" is not a time`},
		{put, with(`"start":"2031-01-01T00:00:00Z","end":"2030-01-01T00:00:00Z"`), 400, "end"},
		{put, with(`"revision":""`), 400, "revision: is empty"},
		{put, with(`"revision":"7"`), 409, "changed meanwhile"},
		{put, with(`"name":"s"`), 400, "name: no such field"},
		{put, with(`"spec":"@hourly"`), 400, "spec: given twice"},
		{put, within(`"key":"k"`), 400, "key: is set by the schedule; leave it out of the message"},
		{put, within(`"due":"2030-01-01T00:00:00Z"`), 400, "due: is set by the schedule"},
		{put, within(`"delay":"1s"`), 400, "delay: is set by the schedule"},
		{put, within(`"on_conflict":"replace"`), 400, "on_conflict: is set by the schedule"},
		{put, within(`"lease":"t"`), 400, "lease: "},
		{put, within(`"nope":1`), 400, "nope: no such field"},
		{put, within(`"body":1,"body_base64":"AA=="`), 400, "body: give body or body_base64, not both"},
		{put, within(`"body":"` + strings.Repeat("x", 1000) + `"`), 413, "too large"},
		{put, within(`"body":"` + strings.Repeat("x", 10_000) + `"`), 413, "the request is larger than 10000 bytes"},
		{"PUT /v1/schedules/-s", `{"spec":"@daily",` + message + `}`, 400, "the name"},
		{"PUT /v1/schedules/" + strings.Repeat("s", 300), `{"spec":"@daily",` + message + `}`, 400, "the name"},
		{"PUT /v1/schedules/a/b", `{"spec":"@daily",` + message + `}`, 404, "there is no /v1/schedules/a/b"},
		{"PATCH /v1/schedules/s", `{}`, 405, "PATCH is not allowed here"},
		{"GET /v1/schedules/s", ``, 404, "not found"},
		{"DELETE /v1/schedules/s", ``, 404, "not found"},
		{"DELETE /v1/schedules/s?rev=1", ``, 400, "rev: no such parameter"},
		{"POST /v1/schedules/s/pause", ``, 404, "not found"},
		{"POST /v1/schedules/s/pause", `{"for":"1h"}`, 400, "for: no such field"},
		{"POST /v1/schedules/s/resume", ``, 404, "not found"},
		{"POST /v1/schedules/s/trigger", ``, 404, "not found"},
		{"GET /v1/schedules/s/next", ``, 404, "not found"},
		{"GET /v1/schedules/s/next?n=0", ``, 400, "n: must be a whole number from 1 to 1000, not 0"},
		{"GET /v1/schedules/s/next?n=1001", ``, 400, "n: must be a whole number from 1 to 1000, not 1001"},
		{"GET /v1/schedules?limit=1001", ``, 400, "limit: must be"},
		{"GET /v1/schedules?after=x", ``, 400, `"x"`},
		{"POST /v1/schedules/preview", `{}`, 400, "spec: is missing"},
		{"POST /v1/schedules/preview", `{"spec":"0 0 30 2 *"}`, 400, "never"},
		{"POST /v1/schedules/preview", `{"spec":"@daily","name":"-"}`, 400, "the name"},
		{"POST /v1/schedules/preview", `{"spec":"@daily","revision":"1"}`, 400, "revision: no such field"},
		{"POST /v1/schedules/preview", `{"spec":"@daily","message":{"queue":"q","ttr":"0s"}}`, 400, "ttr: "},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		w := a.send(method, path, c.body)
		if _, message := checkError(t, w); w.Code != c.status || !strings.Contains(message, c.says) {
			t.Errorf("%s %.200s: %d %q, want %d %q", c.request, c.body, w.Code, message, c.status, c.says)
		}
	}
	if page := a.call(200, "GET", "/v1/schedules", ""); len(page["schedules"].([]any)) != 0 {
		t.Errorf("stored is %v", page)
	}
}

// A schedule is stored, told, fires, is paused, resumed, triggered, changed and removed.
func TestScheduleOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newScheduled(t)
		stop := a.run()
		defer stop()
		a.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"history":"1h"}}`)
		const path = "/v1/schedules/a%2Fb"
		const whole = `{"spec":"*/10 * * * *","zone":"Europe/Berlin","jitter":"1s","catch_up":"all","start":"2000-01-01T00:00:00Z","end":"2001-01-01T00:00:00Z","message":{"queue":"q","body":{"b":1, "a":[ ]},"headers":{"k":["1","2"]},"priority":7,"max_attempts":3,"ttr":"90s","backoff":["1s"],"expire_after":"0s","remember":"48h","isolate":false}`
		put := a.call(200, "PUT", path, whole+`}`)
		again := a.call(200, "PUT", path, whole+`,"revision":"`+put["revision"].(string)+`"}`)
		if fmt.Sprint(again) != fmt.Sprint(put) || put["name"] != "a/b" || put["state"] != "active" {
			t.Errorf("stored is %v, then %v", put, again)
		}
		got := a.send("GET", path, "").Body.String()
		const told = `{"name":"a/b","spec":"*/10 * * * *","zone":"Europe/Berlin","jitter":"1s","catch_up":"all","start":"2000-01-01T00:00:00Z","end":"2001-01-01T00:00:00Z",` +
			`"message":{"queue":"q","body":{"b":1, "a":[ ]},"content_type":"application/json","headers":{"k":["1","2"]},"priority":7,"max_attempts":3,"ttr":"1m30s","backoff":["1s"],"expire_after":"0s","remember":"48h","isolate":false},"state":"active",`
		if !strings.HasPrefix(got, told) || strings.Contains(got, `"runs"`) {
			t.Errorf("told is %s", got)
		}
		listed := a.send("GET", "/v1/schedules", "").Body.String()
		if !strings.HasPrefix(listed, `{"schedules":[`+strings.Replace(told, `"body":{"b":1, "a":[ ]},`, "", 1)) {
			t.Errorf("listed is %s", listed)
		}
		due := a.call(200, "GET", path+"/next?n=2", "")
		next := field(t, due, "next").([]any)
		if len(next) != 2 || next[0] != put["next"] || len(due["explain"].([]any)) == 0 {
			t.Errorf("next are %v of %v", due, put["next"])
		}
		time.Sleep(time.Second) // the jitter of the instant at the start
		would := a.call(200, "POST", "/v1/schedules/preview?n=2", `{"spec":"*/10 * * * *","zone":"Europe/Berlin","jitter":"1s","start":"2000-01-01T00:00:00Z","end":"2001-01-01T00:00:00Z","name":"a/b"}`)
		if fmt.Sprint(would) != fmt.Sprint(due) {
			t.Errorf("the preview is %v, want %v", would, due)
		}

		at := instant(t, next[0])
		time.Sleep(time.Until(at) + time.Second)
		fired := a.call(200, "GET", path, "")
		run := field(t, fired, "runs", 0)
		if fired["next"] != next[1] || field(t, run, "key") != "a/b@2000-01-01T00:10:00Z" || field(t, run, "manual") != false || field(t, run, "state") != "ready" {
			t.Errorf("fired has %v", fired)
		}
		l, err := a.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
		if err != nil || len(l.Messages) != 1 {
			t.Fatal(l, err)
		}
		m := l.Messages[0]
		if m.Headers[2] != (engine.Header{Name: "tarry-schedule", Value: "a/b"}) || string(m.Body) != `{"b":1, "a":[ ]}` || m.Priority != 7 || !m.Due.Equal(at) {
			t.Errorf("pushed is %+v", m)
		}
		time.Sleep(5 * time.Second)
		out, err := a.c.Settle(t.Context(), []engine.Settlement{{Token: m.Token, Do: engine.Ack}})
		if err := cmpErr(err, out); err != nil {
			t.Fatal(err)
		}
		run = field(t, a.call(200, "GET", path, ""), "runs", 0)
		if late := time.Until(at) + 5*time.Second; field(t, run, "state") != "finished" || field(t, run, "ending") != "acked" || field(t, run, "ran") != "5s" || field(t, run, "late") != tarry.FormatDuration(-late) || field(t, run, "attempt") != 1.0 {
			t.Errorf("after %s the run is %v", -late, run)
		}

		paused := a.call(200, "POST", path+"/pause", "")
		if paused["state"] != "paused" || paused["next"] != nil || paused["revision"] == put["revision"] {
			t.Errorf("paused is %v", paused)
		}
		// What another pushes with the key of a run that is not known any more is not its outcome.
		a.call(200, "POST", "/v1/queues/q/purge", `{"finished":true}`)
		a.call(201, "POST", "/v1/queues/q/messages", `{"key":"a/b@2000-01-01T00:10:00Z"}`)
		if run := field(t, a.call(200, "GET", path, ""), "runs", 0); field(t, run, "key") != "a/b@2000-01-01T00:10:00Z" || field(t, run, "state") != nil {
			t.Errorf("the run is %v", run)
		}
		time.Sleep(time.Hour)
		triggered := a.call(200, "POST", path+"/trigger", "")
		if triggered["manual"] != true || triggered["key"] == field(t, run, "key") {
			t.Errorf("triggered is %v", triggered)
		}
		resumed := a.call(200, "POST", path+"/resume", "")
		if runs := field(t, a.call(200, "GET", path, ""), "runs").([]any); resumed["state"] != "active" || resumed["next"] == nil || len(runs) != 2 || field(t, runs, 0, "id") != triggered["id"] {
			t.Errorf("resumed is %v with the runs %v", resumed, runs)
		}

		stale := `{"spec":"@every 1h","message":{"queue":"q"},"revision":"` + put["revision"].(string) + `"}`
		if w := a.send("PUT", path, stale); w.Code != 409 || !strings.Contains(w.Body.String(), `"code":"stale"`) {
			t.Errorf("a stale edit: %d %s", w.Code, w.Body)
		}
		if w := a.send("DELETE", path+"?revision="+put["revision"].(string), ""); w.Code != 409 {
			t.Errorf("a stale removal: %d %s", w.Code, w.Body)
		}
		a.call(409, "PUT", path, strings.Replace(stale, put["revision"].(string), "0", 1))
		changed := a.call(200, "PUT", path, `{"spec":"@every 1h","message":{"queue":"r","body_base64":"AAE="},"revision":"`+resumed["revision"].(string)+`"}`)
		if changed["zone"] != nil || field(t, changed, "message", "body_base64") != "AAE=" || field(t, changed, "message", "headers") != nil {
			t.Errorf("changed is %v", changed)
		}
		a.call(204, "DELETE", path+"?revision="+changed["revision"].(string), "")
		a.call(404, "GET", path, "")
		if n := a.call(200, "GET", "/v1/queues/q", "")["ready"]; n != 2.0 {
			t.Errorf("%v of what was pushed are left, want 2", n)
		}
	})
}

func instant(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Of two who edit at once one is told that it came too late.
func TestTwoEditSchedulesAtOnce(t *testing.T) {
	a := newScheduled(t)
	first := a.call(200, "PUT", "/v1/schedules/s", `{"spec":"@daily","message":{"queue":"q"},"revision":"0"}`)
	codes := make(chan int, 8)
	for i := range cap(codes) {
		go func() {
			codes <- a.send("PUT", "/v1/schedules/s", fmt.Sprintf(`{"spec":"%d * * * *","message":{"queue":"q"},"revision":%q}`, i, first["revision"])).Code
		}()
	}
	count := make(map[int]int)
	for range cap(codes) {
		count[<-codes]++
	}
	if count[200] != 1 || count[409] != cap(codes)-1 {
		t.Errorf("answered was %v", count)
	}
}

// Pages of schedules go on where the one before ended.
func TestPagesOfSchedules(t *testing.T) {
	a := newScheduled(t)
	for i := range 25 {
		a.call(200, "PUT", fmt.Sprintf("/v1/schedules/s%02d", i), fmt.Sprintf(`{"spec":"%d 0 1 1 *","message":{"queue":"q"}}`, i))
	}
	a.call(200, "POST", "/v1/schedules/s03/pause", "")
	seen, after, pages := "", "", 0
	for {
		page := a.call(200, "GET", "/v1/schedules?limit=10&after="+after, "")
		for _, s := range page["schedules"].([]any) {
			seen += field(t, s, "name").(string) + " "
		}
		pages++
		if after = url.QueryEscape(page["next"].(string)); after == "" {
			break
		}
	}
	want := ""
	for i := range 25 {
		if i != 3 {
			want += fmt.Sprintf("s%02d ", i)
		}
	}
	if seen != want+"s03 " || pages != 3 {
		t.Errorf("%d pages: %s", pages, seen)
	}
}
