package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/trend"
)

func TestTrendsTellWhatHappened(t *testing.T) {
	a := newAPI(t)
	a.clock.Advance(5 * time.Second)
	for i := range 3 {
		a.call(201, "POST", "/v1/queues/a/messages", fmt.Sprintf(`{"key":"%d","delay":"1s"}`, i))
	}
	a.call(409, "POST", "/v1/queues/a/messages", `{"key":"0"}`)
	a.call(201, "POST", "/v1/queues/b/messages", `{"delay":"1h"}`)
	a.call(204, "DELETE", "/v1/queues/a/keys/2", "")
	a.clock.Advance(11 * time.Second) // due 10 s ago
	leased := a.call(200, "POST", "/v1/lease", `{"queues":["a"],"max":10}`)
	a.call(200, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"ack"},{"lease":%q,"do":"bury"}]}`,
		field(t, leased, "messages", 0, "lease"), field(t, leased, "messages", 1, "lease")))

	got := a.call(200, "GET", "/v1/queues/a/trend?span=1m&step=10s", "")
	for _, c := range []struct {
		path []any
		want string
	}{
		{[]any{"queue"}, `"a"`},
		{[]any{"from"}, `"2030-03-01T11:59:20.000Z"`},
		{[]any{"span"}, `"1m"`},
		{[]any{"step"}, `"10s"`},
		{[]any{"steps", "pushed"}, `[0,0,0,0,3,0]`},
		{[]any{"steps", "leased"}, `[0,0,0,0,0,2]`},
		{[]any{"steps", "lateness", "count"}, `[0,0,0,0,0,2]`},
		{[]any{"steps", "lateness", "max_ms"}, `[null,null,null,null,null,10000]`},
		{[]any{"heat", "cells"}, `[[5,29,2]]`},
		{[]any{"heat", "bounds_ms", 0}, `0.5`},
		{[]any{"heat", "bounds_ms", 28}, `8192`}, // where bucket 29 begins
		{[]any{"total", "pushed"}, `3`},
		{[]any{"total", "acked"}, `1`},
		{[]any{"total", "died"}, `1`},
		{[]any{"total", "cancelled"}, `1`},
		{[]any{"total", "lateness", "p99_ms"}, `10000`},
		{[]any{"total", "handling", "p50_ms"}, `null`},
	} {
		if is, _ := json.Marshal(field(t, got, c.path...)); string(is) != c.want {
			t.Errorf("%v is %s, want %s", c.path, is, c.want)
		}
	}

	page := a.call(200, "GET", "/v1/trends?limit=1&span=1m", "")
	if is, _ := json.Marshal(field(t, page, "queues", 0, "spark")); string(is) != `{"acked":[0,0,0,0,0,1],"p99_ms":[null,null,null,null,null,10000],"pushed":[0,0,0,0,3,0]}` ||
		field(t, page, "queues", 0, "lateness", "count") != 2.0 || page["next"] != "a" || page["step"] != "10s" || page["from"] != "2030-03-01T11:59:20.000Z" {
		t.Errorf("the first page is %v", page)
	}
	page = a.call(200, "GET", "/v1/trends?limit=1&span=1m&after=a", "")
	if field(t, page, "queues", 0, "queue") != "b" || page["next"] != "" {
		t.Errorf("the second page is %v", page)
	}
	page = a.call(200, "GET", "/v1/trends?queues=c,b,b&span=1m", "")
	if field(t, page, "queues", 0, "queue") != "b" || len(page["queues"].([]any)) != 1 || page["next"] != "" {
		t.Errorf("of b and c there is %v", page)
	}
	a.clock.Advance(2 * time.Minute)
	if page = a.call(200, "GET", "/v1/trends?span=1m", ""); len(page["queues"].([]any)) != 0 {
		t.Errorf("two minutes later there is %v", page)
	}
	got = a.call(200, "GET", "/v1/queues/nobody/trend", "")
	if n := len(field(t, got, "steps", "acked").([]any)); n != 90 || field(t, got, "total", "pushed") != 0.0 {
		t.Errorf("of nobody: %d steps, %v", n, got["total"])
	}
}

func TestTrendsOfWrongSpans(t *testing.T) {
	a := newAPI(t)
	for query, want := range map[string]string{
		"span=4d":          "span: 96h is not within 72h",
		"span=x":           `span: "x" is not a duration`,
		"span=-1m":         "span: -1m is negative",
		"span=0s":          "span: must be longer than nothing",
		"span=1h&step=10s": "step: 10s is not a multiple of 1m, the finest step of a span of 1h",
		"span=25s":         "step: the span of 25s is not a multiple of 10s",
		"steps=3":          "steps: no such parameter",
	} {
		for _, path := range []string{"/v1/queues/q/trend?", "/v1/trends?"} {
			w := a.send("GET", path+query, "")
			if _, message := checkError(t, w); w.Code != 400 || message != want {
				t.Errorf("%s: %d %s, want %s", query, w.Code, message, want)
			}
		}
	}
	for path, want := range map[string]string{
		"/v1/trends?span=6h&step=1m":         "step: 1m makes more than 100 steps",
		"/v1/trends?limit=0":                 "limit: must be a whole number from 1 to 1000, not 0",
		"/v1/trends?queues=a,-b":             `queues: "-b" is not the name of a queue`,
		"/v1/trends?queues=a&after=b":        "queues: go without after and limit",
		"/v1/trends?queues=" + names(101, 0): "queues: more than 100",
	} {
		w := a.send("GET", path, "")
		if _, message := checkError(t, w); w.Code != 400 || message != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, message, want)
		}
	}
	for span, step := range map[string]string{"15m": "30s", "5m": "10s", "6h": "12m", "72h": "2h40m", "72h10m": "", "10m": "20s", "70m": "5m"} {
		w := a.send("GET", "/v1/trends?span="+span, "")
		var got struct{ Step string }
		if _ = json.Unmarshal(w.Body.Bytes(), &got); got.Step != step {
			t.Errorf("a span of %s has steps of %q, want %q: %s", span, got.Step, step, w.Body)
		}
	}
}

// Pages of trends take memory: few are made at a time, and the others wait.
func TestTrendsForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		on := make(chan struct{})
		close(on)
		trends := trend.New(&trend.Config{Now: func() time.Time {
			looks.Add(1)
			<-on
			return time.Now()
		}})
		trends.Meter().Pushed("q", tarry.Created, nil, 1)
		c := tarry.New(memengine.New(nil), nil)
		defer c.Engine().Close()
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, &server.Config{Trends: trends})}
		on = make(chan struct{})
		looks.Store(0)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { a.call(200, "GET", "/v1/trends", "") })
		}
		synctest.Wait()
		if n := looks.Load(); n != 8 {
			t.Errorf("%d are made at a time", n)
		}
		close(on)
		all.Wait()
	})
}

func TestServerWithoutTrends(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	s := newServer(t, c, &server.Config{})
	for _, path := range []string{"/v1/trends", "/v1/queues/q/trend"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil)
		s.ServeHTTP(w, r)
		if code, _ := checkError(t, w); w.Code != 501 || code != "unsupported" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
