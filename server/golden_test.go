package server_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// script is a request a line: a method, a path, a body, and "exact" for the header
// Tarry-Exact. "+5m" moves the clock. LEASE is the last lease, NEXT the last cursor.
const script = `
POST /v1/queues/orders/messages {"body":{"b":1, "a":[ ]},"delay":"30m","key":"42","priority":7,"headers":{"z":"1","a":["2","3"]},"max_attempts":3,"backoff":["15s","3m"],"ttr":"90s","expire_after":"7d"}
POST /v1/queues/orders/messages {"key":"42","on_conflict":"keep"}
POST /v1/queues/orders/messages {"key":"42"}
POST /v1/queues/orders/messages {}
POST /v1/queues/orders/messages {"nope":1}
POST /v1/queues/orders/messages {"delay":30}
POST /v1/queues/orders/messages {"delay":"soon"}
POST /v1/queues/orders/messages {"body":1,"content_type":"text/plain"}
POST /v1/queues/orders/messages {
POST /v1/queues/orders/messages []
POST /v1/queues/orders/messages {"key":"<&\u2028\\\" é"}
PUT /v1/queues/orders/keys/a%2Fb {"delay":"1m","body_base64":"AAH/"}
PUT /v1/queues/orders/keys/a%2Fb {"delay":"2m"}
PUT /v1/queues/orders/keys/a%2Fb {"key":"other"}
POST /v1/messages {"messages":[{"queue":"b","body":1},{"queue":"b","delay":5},{"body":2},{"queue":"orders","key":"42"},7],"atomic":false}
POST /v1/messages {"messages":[{"queue":"orders","key":"42"}]}
POST /v1/messages {"messages":[{"queue":"c","key":"1"},{"queue":"c","key":"1"}],"atomic":true}
POST /v1/messages {"messages":[{"queue":"c","ttr":"x"}],"atomic":true}
POST /v1/messages {}
GET /v1/queues/orders/keys/42
GET /v1/queues/orders/keys/42 exact
GET /v1/queues/orders/messages/1
GET /v1/queues/orders/keys/a%2fb
GET /v1/queues/orders/messages/99
GET /v1/queues/orders/messages/01
GET /v1/queues/orders/messages/1?x=1
HEAD /v1/queues/orders/messages/1
PATCH /v1/queues/orders/keys/42 {"delay":"1h"}
PATCH /v1/queues/orders/keys/42 {"due":"2030-03-01T13:00:00.5+01:00"}
PATCH /v1/queues/orders/keys/42 {"due":"2030-03-02T00:00:00Z"}
PATCH /v1/queues/orders/keys/42 {}
POST /v1/queues/orders/keys/42/claim {"ttr":"30s"}
+12h
POST /v1/queues/orders/keys/42/claim {"ttr":"30s"}
GET /v1/queues/orders/keys/42
POST /v1/queues/orders/keys/42/claim
DELETE /v1/queues/orders/keys/42
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"extend","ttr":"1m"},{"lease":"LEASE","do":"retry","reason":"no"},{"lease":"LEASE","do":"ack"},{"lease":"x","do":"fly"},{"do":"ack"}]}
POST /v1/settle {"settlements":[]}
POST /v1/settle {}
POST /v1/cancel {"refs":[{"queue":"orders","key":"a/b"},{"queue":"orders","id":"99"},{"queue":"orders"},{"queue":7}]}
DELETE /v1/queues/b/messages/4
DELETE /v1/queues/b/messages/4
GET /v1/queues
GET /v1/queues?limit=1
GET /v1/queues?limit=0
GET /v1/queues/orders
GET /v1/queues/none
GET /v1/queues/orders/messages
GET /v1/queues/orders/messages?state=ready&body=true
GET /v1/queues/orders/messages?state=ready&body=true exact
GET /v1/queues/orders/messages?limit=1
GET /v1/queues/orders/messages?state=gone
GET /v1/queues/orders/messages?after=x
GET /v1/queues/orders/forecast?step=1m&span=2m
GET /v1/queues/orders/forecast?span=x
POST /v1/queues/orders/pause {"for":"10m"}
GET /v1/queues/orders
POST /v1/lease {"queues":["orders"]}
POST /v1/queues/orders/resume
POST /v1/lease {"queues":["orders"],"max":1,"ttr":"10s"}
POST /v1/lease {"queues":["orders"],"max":1,"ttr":"10s","wait":"1ms"} exact
POST /v1/lease {"queues":["nobody"],"wait":"1ms","poll":"mine"}
POST /v1/lease {"queues":["nobody","-bad"]}
POST /v1/lease {"queues":["q"],"max":0}
POST /v1/lease {"queues":["q"],"wait":"61s"}
POST /v1/lease/end {"poll":"mine"}
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"bury","reason":"bad"}]}
GET /v1/queues/orders/messages?state=dead
POST /v1/queues/orders/redrive {"ids":["3","77"]}
POST /v1/queues/orders/redrive {"ids":[]}
POST /v1/queues/orders/purge {"dead":true}
POST /v1/queues/orders/purge {"dead":"yes"}
GET /v1/queues/set/settings
PUT /v1/queues/set/settings {"settings":{"max_attempts":2,"backoff":["1s","1m"],"ttr":"5s","priority":0,"expire_after":"0s","remember":"1h","dead_keep":"7d","dead_max":10,"max_pending":2,"in_flight":1,"rate":0.5,"burst":3}}
GET /v1/queues/set/settings
PUT /v1/queues/set/settings {"settings":{"remember":"1h","max_pending":2,"in_flight":1},"revision":"1"}
PUT /v1/queues/set/settings {"settings":{},"revision":"1"}
PUT /v1/queues/set/settings {}
PUT /v1/queues/set/settings {"settings":{"rate":0}}
PUT /v1/queues/set/settings {"settings":{"rate":-1}}
PUT /v1/queues/set/settings {"settings":{"burst":5}}
PUT /v1/queues/set/settings {"settings":{"key":5}}
PATCH /v1/queues/set/settings {"settings":{}}
GET /v1/queues/set/settings?x=1
POST /v1/queues/set/messages {"key":"a"}
POST /v1/queues/set/messages {"key":"b"}
POST /v1/queues/set/messages {"key":"c"}
POST /v1/lease {"queues":["set"]}
POST /v1/lease {"queues":["set"]}
POST /v1/queues/set/keys/b/claim
PATCH /v1/queues/set/keys/b?if_state=scheduled {"delay":"1h"}
PATCH /v1/queues/set/keys/b?if_state=finished {"delay":"1h"}
DELETE /v1/queues/set/keys/b?if_state=
PATCH /v1/queues/set/keys/b?if_state=ready {"delay":"1h"}
POST /v1/cancel {"refs":[{"queue":"set","key":"b","if_state":"ready"},{"queue":"set","key":"a","if_state":"leased"},{"queue":"set","key":"b","if_state":"gone"}]}
GET /v1/queues/set/messages?state=scheduled&from=2030-03-02T01:00:00Z&to=2030-03-02T01:00:00.000000001Z&order=desc
GET /v1/queues/set/messages?state=scheduled&to=2030-03-02T01:00:00Z
GET /v1/queues/set/messages?from=2030-03-02T02:00:00%2B01:00&order=asc
GET /v1/queues/set/messages?from=2030-03-02T02:00:00+01:00
GET /v1/queues/set/messages?order=up
GET /v1/queues/set/messages?state=finished
GET /v1/queues/set/messages?state=gone
DELETE /v1/queues/set/keys/b?if_state=ready
DELETE /v1/queues/set/keys/b?if_state=scheduled
DELETE /v1/queues/set/keys/b
GET /v1/queues/set/keys/b
GET /v1/queues/set
POST /v1/queues/set/messages {"key":"b"}
POST /v1/queues/set/messages {"key":"b","on_conflict":"keep"}
POST /v1/messages {"messages":[{"queue":"set","key":"b"},{"queue":"set","key":"b","on_conflict":"keep"}]}
POST /v1/queues/set/purge {"finished":true}
GET /v1/queues/set/keys/b
POST /v1/queues/more/messages {"key":"42","delay":"30m"}
POST /v1/queues/more/messages {"key":"42","on_conflict":"replace","body_base64":"AAH/","delay":"1m"}
GET /v1/queues/more/keys/42
PUT /v1/queues/more/keys/k2 {"delay":"1m","key":"k2","on_conflict":"rearm"}
GET /v1/queues/more/messages?limit=1
GET /v1/queues/more/messages?limit=1&body=true&after=NEXT
PUT /v1/queues/more/keys/42 {"delay":"0s"}
POST /v1/queues/more/keys/42/claim
PATCH /v1/queues/more/keys/42 {"delay":"1h"}
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"bury","reason":"bad"}]}
POST /v1/queues/more/redrive {}
POST /v1/messages {"messages":[{"queue":"more","key":"x","on_conflict":"rearm","nope":[{}]},{"queue":"more"}]}
GET /v1/queues/c
POST /v1/cancel {"refs":[{"key":"k"},{"queue":"","key":"k"},{"queue":"q","key":""},{"queue":"q","key":"k","id":"1"}]}
POST /v1/queues/more/messages {"due":1900000000}
POST /v1/queues/more/messages {"key":"a\ud800b"}
POST /v1/queues/more/messages {"body":"a\udc00"}
POST /v1/queues/more/messages {"headers":{"a":"\ud800\ud800"}}
POST /v1/queues/null/messages {"key":null,"delay":null,"due":null,"headers":null,"priority":null,"max_attempts":null,"ttr":null,"backoff":null,"expire_after":null,"remember":null,"on_conflict":null,"content_type":null,"body_base64":null,"body":null}
POST /v1/lease {"queues":["null"],"max":null,"wait":null,"ttr":null,"poll":null,"set":null,"keep":null,"room":null}
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"ack","delay":null,"due":null,"ttr":null,"reason":null}]}
POST /v1/queues/null/pause {"for":null}
PUT /v1/queues/null/settings {"settings":{"rate":null,"in_flight":null},"revision":null}
POST /v1/messages {"messages":null}
POST /v1/settle {"settlements":null}
POST /v1/lease {"queues":null}
POST /v1/lease {"queues":[null]}
POST /v1/lease {"queues":["null"],"wait":"1s","room":[{}]}
POST /v1/queues/null/messages {"key":null,"key":"a"}
POST /v1/queues/null/messages {"key":"a","key":null}
POST /v1/queues/null/messages {"nope":null}
POST /v1/queues/null/messages {"headers":{"a":null}}
PUT /v1/queues/past/settings {"settings":{"history":"24h","history_max":2}}
PUT /v1/queues/past/settings {"settings":{"history_max":0}}
POST /v1/queues/past/messages {"key":"a","remember":"1h","backoff":["1ms"]}
POST /v1/lease {"queues":["past"],"worker":"w"}
GET /v1/queues/past/messages?state=leased
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"retry","reason":"no"}]}
1s
POST /v1/lease {"queues":["past"],"worker":"w"}
2s
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"ack"}]}
GET /v1/queues/past/keys/a
POST /v1/queues/past/messages {}
GET /v1/queues/past
GET /v1/queues/past/messages?state=finished&order=desc
PUT /v1/queues/past/settings {"settings":{"history":"0s"}}
GET /v1/queues/past/messages?state=finished&order=desc
POST /v1/queues/state/messages {"key":"k","delay":"1h"}
POST /v1/queues/state/keys/k/claim?if_state=ready
POST /v1/queues/state/keys/k/claim?if_state=gone
POST /v1/queues/state/keys/k/claim?if_state=scheduled {"ttr":"30s"}
POST /v1/settle {"settlements":[{"lease":"LEASE","do":"extend","priority":3},{"lease":"LEASE","do":"release","priority":-1},{"lease":"LEASE","do":"release","priority":3}]}
GET /v1/queues/state/keys/k
DELETE /v1/queues/state/keys/k
GET /v1/info
GET /healthz
GET /readyz
GET /v1/forecast
GET /v1/problems
GET /v1/problems?late=x
PUT /v1/schedules/night%2Fly {"spec":"0 2 * * 1-5","zone":"Europe/Berlin","jitter":"5m","catch_up":"skip","end":"2031-01-01T00:00:00Z","message":{"queue":"report","body":{"b":1, "a":[ ]},"headers":{"k":["1","2"]},"remember":"0s"},"revision":"0"}
PUT /v1/schedules/night%2Fly {"spec":"@daily","message":{"queue":"report"},"revision":"0"}
PUT /v1/schedules/bad {"spec":"0 0 30 2 *","message":{"queue":"report"}}
PUT /v1/schedules/bad {"spec":"@every 1ms","message":{"queue":"report"}}
PUT /v1/schedules/bad {"spec":"@daily","zone":"Mars","message":{"queue":"report"}}
PUT /v1/schedules/bad {"spec":"@daily","message":{"queue":"report","key":"k"}}
PUT /v1/schedules/bad {"spec":"@daily","message":{"queue":"report"},"nope":1}
GET /v1/schedules/night%2Fly
GET /v1/schedules/night%2Fly exact
GET /v1/schedules?limit=1
GET /v1/schedules/night%2Fly/next?n=2
POST /v1/schedules/preview?n=1 {"spec":"@daily","start":"2040-02-29T00:00:00+01:00"}
POST /v1/schedules/night%2Fly/pause
POST /v1/schedules/night%2Fly/trigger
GET /v1/schedules/night%2Fly
POST /v1/schedules/night%2Fly/resume {}
DELETE /v1/schedules/night%2Fly?revision=x
DELETE /v1/schedules/night%2Fly
GET /v1/schedules/night%2Fly
GET /v1/schedules/night/ly
GET /
GET /v1/queues/orders/nope
GET /v1/queues/orders/
GET /v1/queues/orders/keys//claim
GET /v1/queues/orders/keys/a/../b
GET /v1/queues/orders/keys/%2E%2E
GET /v1/queues/%2F/keys/%2f
DELETE /v1/queues/orders/messages
GET /v1/lease
BREW /v1/info
POST /v1/nope {}
POST /v1/queues/held/messages {"key":"p","body":1}
POST /v1/lease {"queues":["held"]}
POST /v1/queues/held/messages {"key":"p","on_conflict":"replace","lease":"LEASE","body":2,"delay":"1m"}
POST /v1/queues/held/messages {"key":"p","on_conflict":"replace","lease":"LEASE","body":3}
POST /v1/queues/held/messages {"key":"p","lease":"LEASE","body":3}
PUT /v1/queues/held/keys/p {"lease":"LEASE"}
POST /v1/messages {"messages":[{"queue":"held","key":"p","on_conflict":"replace","lease":"LEASE"}]}
`

// engineHint is a hint that the engine gives, which is for people and may change.
var engineHint = regexp.MustCompile(`("code":"(?:exists|leased|not_due|lease_lost|stale|limit)","message":"(?:[^"\\]|\\.)*","hint":)"(?:[^"\\]|\\.)*"`)

// cursor is where a list goes on, which is the engine's matter.
var cursor = regexp.MustCompile(`("next":")([a-z]+):([^"]+)"`)

// What is pinned here is relied on from outside.
func TestGoldenAnswers(t *testing.T) {
	a := newAPI(t)
	started := time.Now()
	var got bytes.Buffer
	lease, next := "", ""
	anyLease := regexp.MustCompile(`"lease":"([^"]{20,})"`)
	revision := regexp.MustCompile(`"revision":"[A-Z0-9]{12}"`)
	explained := regexp.MustCompile(`"explain":\["[^\]]*\]`)
	waitedFor := regexp.MustCompile(`,"waited":"[^"]*"`)
	for line := range strings.Lines(strings.TrimPrefix(script, "\n")) {
		line = strings.TrimSpace(line)
		fmt.Fprintln(&got, line)
		if d, err := time.ParseDuration(line); err == nil {
			a.clock.Advance(d)
			continue
		}
		method, rest, _ := strings.Cut(line, " ")
		path, body, _ := strings.Cut(rest, " ")
		body, exact := strings.CutSuffix(body, "exact")
		r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(path, "NEXT", url.QueryEscape(next)), strings.NewReader(strings.ReplaceAll(body, "LEASE", lease)))
		r.Host = "localhost:8277"
		r.Header.Set("Content-Type", "application/json")
		if exact {
			r.Header.Set("Tarry-Exact", "true")
		}
		w := httptest.NewRecorder()
		a.s.ServeHTTP(w, r)
		fmt.Fprintln(&got, w.Code)
		var names []string
		for name := range w.Header() {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			switch value := w.Header().Get(name); {
			case name == "Date":
			case name != "Content-Length": // a lease has no length of its own
				fmt.Fprintf(&got, "%s: %s\n", name, value)
			case w.Body.Len() > 0 && value != fmt.Sprint(w.Body.Len()):
				t.Errorf("%s: the length is %s, not %d", line, value, w.Body.Len())
			}
		}
		answer := w.Body.String()
		if m := anyLease.FindStringSubmatch(answer); m != nil && method == http.MethodPost {
			lease = m[1]
		}
		answer = anyLease.ReplaceAllString(answer, `"lease":"LEASE"`)
		if strings.Contains(path, "/info") || strings.Contains(body, `"wait":"1ms","poll"`) {
			answer = regexp.MustCompile(`"now":"[^"]*"`).ReplaceAllStringFunc(answer, func(s string) string {
				if at, err := time.Parse(`"now":"`+"2006-01-02T15:04:05.000Z"+`"`, s); err != nil || at.Before(started.Add(-time.Second)) {
					return s
				}
				return `"now":"NOW"` // the server's own clock
			})
		}
		answer = waitedFor.ReplaceAllString(answer, "")                    // depends on the machine
		answer = explained.ReplaceAllString(answer, `"explain":["WORDS"]`) // for people
		answer = revision.ReplaceAllString(answer, `"revision":"REVISION"`)
		answer = engineHint.ReplaceAllString(answer, `$1"HINT"`)
		if m := cursor.FindStringSubmatch(answer); m != nil {
			next = m[2] + ":" + m[3]
		}
		answer = cursor.ReplaceAllString(answer, `$1$2:CURSOR"`)
		fmt.Fprintf(&got, "%s\n\n", answer)
	}
	const file = "testdata/answers.golden"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	request := ""
	for i := range min(len(gotLines), len(wantLines)) {
		if i > 1 && gotLines[i-1] == "" {
			request = gotLines[i]
		}
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s\ngot  %s\nwant %s", request, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, want %d", len(gotLines), len(wantLines))
	}
}
