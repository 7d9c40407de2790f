package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
)

const (
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	otherParent = "00-11111111111111111111111111111111-2222222222222222-01"
)

// pushFrom pushes with headers of a request and returns those of the messages.
func (a *api) pushFrom(method, path, body string, headers ...string) (all []string) {
	a.Helper()
	r := httptest.NewRequestWithContext(a.Context(), method, path, strings.NewReader(body))
	r.Host = "localhost:8277"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.s.ServeHTTP(w, r)
	if w.Code >= 300 {
		a.Fatalf("status %d: %s", w.Code, w.Body)
	}
	for m, err := range a.c.List(a.Context(), "q", tarry.Ready) {
		if err != nil {
			a.Fatal(err)
		}
		var has []string
		for _, h := range m.Headers {
			has = append(has, h.Name+"="+h.Value)
		}
		all = append(all, strings.Join(has, " "))
	}
	return all
}

func TestPushCarriesTheTraceOfItsRequest(t *testing.T) {
	const own = `{"headers":{"Traceparent":"` + otherParent + `"}}`
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		want               string
	}{
		"one":   {"POST", "/v1/queues/q/messages", `{}`, []string{"traceparent", traceParent}, "traceparent=" + traceParent},
		"rearm": {"PUT", "/v1/queues/q/keys/k", `{}`, []string{"traceparent", traceParent}, "traceparent=" + traceParent},
		"with state": {"POST", "/v1/queues/q/messages", `{"headers":{"a":"b"}}`,
			[]string{"traceparent", traceParent, "tracestate", "x=1", "tracestate", "y=2"}, "a=b traceparent=" + traceParent + " tracestate=x=1,y=2"},
		"no baggage": {"POST", "/v1/queues/q/messages", `{}`, []string{"traceparent", traceParent, "baggage", "user=me"}, "traceparent=" + traceParent},
		"has one":    {"POST", "/v1/queues/q/messages", own, []string{"traceparent", traceParent, "tracestate", "x=1"}, "Traceparent=" + otherParent},
		"none":       {"POST", "/v1/queues/q/messages", `{}`, []string{"tracestate", "x=1"}, ""},
		"many": {"POST", "/v1/messages", `{"messages":[{"queue":"q"},{"queue":"q","headers":{"Traceparent":"` + otherParent + `"}}]}`,
			[]string{"traceparent", traceParent}, "traceparent=" + traceParent + "\nTraceparent=" + otherParent},
		"many, atomic": {"POST", "/v1/messages", `{"atomic":true,"messages":[{"queue":"q"},{"queue":"q"}]}`,
			[]string{"traceparent", traceParent}, "traceparent=" + traceParent + "\ntraceparent=" + traceParent},
		"a state too long": {"POST", "/v1/queues/q/messages", `{}`,
			[]string{"traceparent", traceParent, "tracestate", "x=" + strings.Repeat("1", 600)}, "traceparent=" + traceParent},
		"of a later version": {"POST", "/v1/queues/q/messages", `{}`, []string{"traceparent", "01" + traceParent[2:] + "-more"}, "traceparent=01" + traceParent[2:] + "-more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(newAPI(t).pushFrom(tc.method, tc.path, tc.body, tc.headers...), "\n"); got != tc.want {
				t.Errorf("the messages have headers\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestPushIgnoresATraceThatIsNone(t *testing.T) {
	for _, wrong := range []string{
		"nonsense", strings.ToUpper(traceParent), traceParent + "-more", "ff" + traceParent[2:], traceParent[:54],
		"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01",
		strings.ReplaceAll(traceParent, "-", "_"), "01" + traceParent[2:] + "-\xff", strings.Repeat("-", 55),
	} {
		if got := newAPI(t).pushFrom("POST", "/v1/queues/q/messages", `{}`, "traceparent", wrong); len(got) != 1 || got[0] != "" {
			t.Errorf("%q: the message has headers %q", wrong, got)
		}
	}
}

// A trace never makes a push fail that went without it.
func TestPushWithoutRoomForATrace(t *testing.T) {
	full := `{"headers":{"a":"` + strings.Repeat("x", tarry.MaxHeaderBytes-101) + `"}}`
	got := newAPI(t).pushFrom("POST", "/v1/queues/q/messages", full, "traceparent", traceParent, "tracestate", "x=1"+strings.Repeat("2", 100))
	if len(got) != 1 || strings.Contains(got[0], "traceparent") {
		t.Errorf("the message has headers %q", got)
	}
}
