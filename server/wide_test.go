package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A body that most parsers of JSON could not read does not keep others from being read
// with it.
func TestDeepBodiesSpoilNoAnswer(t *testing.T) {
	a := newAPI(t)
	deepest := func(v any) (depth int) {
		for {
			some, ok := v.([]any)
			if !ok {
				return depth
			}
			depth++
			if len(some) == 0 {
				return depth
			}
			v = some[0]
		}
	}
	for _, depth := range []int{1, 50, 51, 400} {
		body := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		queue := fmt.Sprint("q", depth)
		a.call(201, "POST", "/v1/queues/"+queue+"/messages", `{"key":"k","body":`+body+`}`)
		for _, m := range []any{
			a.call(200, "GET", "/v1/queues/"+queue+"/keys/k", ""),
			field(t, a.call(200, "GET", "/v1/queues/"+queue+"/messages?body=true", ""), "messages", 0),
			field(t, a.call(200, "POST", "/v1/lease", `{"queues":["`+queue+`"]}`), "messages", 0),
		} {
			text, _ := field(t, m, "body_base64").(string)
			kept, err := base64.StdEncoding.DecodeString(text)
			if plain := deepest(field(t, m, "body")); depth <= 50 && plain != depth || depth > 50 && (plain != 0 || err != nil || string(kept) != body) {
				t.Errorf("nested %d deep: %v", depth, m)
			}
			if field(t, m, "content_type") != "application/json" {
				t.Errorf("%v", m)
			}
		}
	}
}

// A field that is null counts as missing where it may be missing, and as missing where it
// may not; a body that is null is null.
func TestNullIsMissing(t *testing.T) {
	a := newAPI(t)
	a.call(201, "POST", "/v1/queues/q/messages", `{"key":null,"delay":null,"due":null,"headers":null,"priority":null,"max_attempts":null,"ttr":null,"backoff":null,
		"expire_after":null,"remember":null,"on_conflict":null,"content_type":null,"body_base64":null,"body":null}`)
	m := field(t, a.call(200, "POST", "/v1/lease", `{"queues":["q"],"max":null,"wait":null,"ttr":null,"poll":null,"set":null,"keep":null,"room":null}`), "messages", 0).(map[string]any)
	if body, is := m["body"]; !is || body != nil || m["key"] != "" || m["max_attempts"] != 20.0 {
		t.Errorf("%v", m)
	}
	a.call(200, "POST", "/v1/settle", `{"settlements":[{"lease":"`+m["lease"].(string)+`","do":"ack","delay":null,"due":null,"ttr":null,"reason":null}]}`)
	a.call(200, "POST", "/v1/queues/q/pause", `{"for":null}`)
	a.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"rate":null,"in_flight":null},"revision":null}`)
	for request, want := range map[string]string{
		`/v1/messages {"messages":null}`:                     "messages: is missing",
		`/v1/settle {"settlements":null}`:                    "settlements: is missing",
		`/v1/lease {"queues":null}`:                          "queues: name at least one",
		`/v1/lease {"queues":[null]}`:                        "queues[0]: must be a string, not null",
		`/v1/queues/q/messages {"key":null,"key":"a"}`:       "key: given twice",
		`/v1/queues/q/messages {"key":"a","key":null}`:       "key: given twice",
		`/v1/queues/q/messages {"nope":null}`:                "nope: no such field",
		`/v1/queues/q/messages {"headers":{"a":null}}`:       "headers.a: must be a string, not null",
		`/v1/lease {"queues":["q"],"wait":"1s","room":[{}]}`: "room[0].queue: is missing",
	} {
		path, body, _ := strings.Cut(request, " ")
		if got := field(t, a.call(400, "POST", path, body), "error", "message"); got != want {
			t.Errorf("%s: %v, want %s", request, got, want)
		}
	}
}

// JavaScript sends half a character where a text was cut in its middle.
func TestHalfCharactersAreRefused(t *testing.T) {
	a := newAPI(t)
	for _, request := range []string{`{"key":"a\ud800b"}`, `{"body":"a\udc00"}`, `{"headers":{"a":"\ud800\ud800"}}`} {
		e := a.call(400, "POST", "/v1/queues/q/messages", request)
		message, hint := field(t, e, "error", "message").(string), field(t, e, "error", "hint").(string)
		if !strings.Contains(message, "invalid surrogate pair") || !strings.Contains(hint, "toWellFormed") {
			t.Errorf("%s: %v", request, e)
		}
	}
}

// No answer of the API is kept by caches, or taken for what it does not say it is.
func TestAnswersAreNotKept(t *testing.T) {
	a := newAPI(t)
	a.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
	for _, request := range []string{"GET /v1/info", "GET /v1/queues/q/keys/k", "GET /v1/nowhere", "DELETE /v1/queues/q/keys/k", "GET /openapi.json", "GET /healthz", "GET /readyz", "POST /v1/lease"} {
		method, path, _ := strings.Cut(request, " ")
		h := a.send(method, path, "").Header()
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", request, h)
		}
	}
}

// Who mistakes a path or a time is told what is right.
func TestHintsOfBadRequests(t *testing.T) {
	a := newAPI(t)
	for request, want := range map[string]string{
		`GET /v1/queue/x `: "/v1/queues/",
		`GET /queues `:     "begin with /v1/",
		`POST /v1/queues/q/messages {"due":1900000000}`: `"2030-01-31T23:59:59.999Z"`,
		`POST /v1/queues/q/messages {"delay":5}`:        `"30m"`,
	} {
		parts := strings.SplitN(request, " ", 3)
		w := a.send(parts[0], parts[1], parts[2])
		if !strings.Contains(w.Body.String(), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %s, want %s", request, w.Body, want)
		}
	}
}
