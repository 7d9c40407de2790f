package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server/access"
)

// A schedule is a matter of its queue, and a change of both queues; what changes it is audited.
func TestSchedulesOfTokens(t *testing.T) {
	g := newGuarded(t)
	all := g.create("all", access.Admin, []string{"*"}, time.Time{})
	mine := g.create("mine", access.Push|access.Read, []string{"mine"}, time.Time{})
	operator := g.create("operator", access.Operate, []string{"mine"}, time.Time{})
	const to = `{"spec":"@daily","message":{"queue":"%"}}`
	is := func(secret, method, path, queue string, status int) string {
		t.Helper()
		body := ""
		if queue != "" {
			body = strings.Replace(to, "%", queue, 1)
		}
		w := g.ask(secret, method, "/v1/schedules"+path, body)
		if w.Code != status {
			t.Errorf("%s %s %s: %d %s, want %d", method, path, queue, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	is(all, "PUT", "/theirs", "theirs", 200)
	is(mine, "PUT", "/s", "theirs", 403)
	is(mine, "PUT", "/s", "mine", 200)
	is(mine, "PUT", "/s", "theirs", 403)
	for _, request := range []string{"GET /theirs", "PUT /theirs", "DELETE /theirs", "POST /theirs/pause", "POST /theirs/resume", "POST /theirs/trigger", "GET /theirs/next"} {
		method, path, _ := strings.Cut(request, " ")
		queue := map[string]string{"PUT": "mine"}[method]
		if told := is(mine, method, path, queue, 403); !strings.Contains(told, "on the queue of this schedule") {
			t.Errorf("%s: %s", request, told)
		}
	}
	if told := is(mine, "GET", "", "", 200); strings.Contains(told, "theirs") || !strings.Contains(told, `"name":"s"`) {
		t.Errorf("listed is %s", told)
	}
	if told := is(all, "GET", "", "", 200); !strings.Contains(told, `"name":"theirs"`) || !strings.Contains(told, `"name":"s"`) {
		t.Errorf("listed is %s", told)
	}
	is(operator, "GET", "/s", "", 403)
	is(operator, "PUT", "/s", "mine", 403)
	is(operator, "POST", "/s/pause", "", 200)
	is(operator, "POST", "/s/resume", "", 200)
	is(operator, "POST", "/s/trigger", "", 200)
	is(all, "PUT", "/s", "theirs", 200)
	is(mine, "PUT", "/s", "mine", 403)
	is(mine, "DELETE", "/s", "", 403)
	is(all, "DELETE", "/s", "", 204)
	is(mine, "DELETE", "/s", "", 404)
	is(mine, "POST", "/preview", "theirs", 200)

	audited := g.audit.String()
	for _, line := range []string{
		`"what":"schedule set","who":"all","token_id":"`, `"schedule":"theirs","queue":"theirs","revision":"`,
		`"what":"schedule set","who":"mine"`, `"schedule":"s","queue":"theirs","from":"192.0.2.1","result":"forbidden"`,
		`"what":"schedule pause","who":"operator"`, `"what":"schedule resume"`, `"what":"schedule trigger"`, `"what":"schedule rm","who":"all"`, `"what":"schedule rm","who":"mine"`, `"result":"not_found"`,
	} {
		if !strings.Contains(audited, line) {
			t.Errorf("audited is not %s: %s", line, audited)
		}
	}
	if n := strings.Count(audited, `"what":"schedule`); n != 18 {
		t.Errorf("%d lines of schedules: %s", n, audited)
	}
}

// meddling is an engine where another changes a schedule right after it was read.
type meddling struct {
	*memengine.Engine
	meddle func()
}

func (m *meddling) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	i, err := m.Engine.Get(ctx, ref)
	if meddle := m.meddle; meddle != nil {
		m.meddle = nil
		meddle()
	}
	return i, err
}

// A token does not change a schedule that is moved to a queue of others meanwhile.
func TestScheduleMovesBeforeItIsChanged(t *testing.T) {
	g := newGuarded(t)
	e := &meddling{Engine: memengine.New(nil)}
	c := tarry.New(e, nil)
	defer c.Close()
	g.Server = New(c, &Config{Guard: g.guard})
	mine := g.create("mine", access.Push, []string{"mine"}, time.Time{})
	set := func(queue string) {
		t.Helper()
		if _, err := c.SetSchedule(t.Context(), tarry.Schedule{Name: "s", Spec: "@daily", Draft: tarry.NewDraft(queue, nil)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for method, body := range map[string]string{"PUT": `{"spec":"@hourly","message":{"queue":"mine"}}`, "DELETE": ""} {
		set("mine")
		e.meddle = func() { set("theirs") }
		if w := g.ask(mine, method, "/v1/schedules/s", body); w.Code != 403 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
		if s, err := c.Schedule(t.Context(), "s"); err != nil || s.Draft.Queue != "theirs" {
			t.Errorf("after %s it is %+v, %v", method, s, err)
		}
	}
}
