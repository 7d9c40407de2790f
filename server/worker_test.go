package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// The name of a worker comes back in what it leases, in look-ups and in lists, however it was
// leased; and so do the failures of a message.
func TestWorkersAndFailures(t *testing.T) {
	a := newAPI(t)
	set := ""
	long := strings.Repeat("é", 4000)
	for n, lease := range []string{
		`{"queues":["q"],"worker":"now"}`,
		`{"queues":["q"],"wait":"1s","worker":"waits"}`,
		`{"queues":["q"],"wait":"1s","keep":true,"worker":"keeps"}`,
		`{"set":%q,"wait":"1s","worker":"of a set"}`,
	} {
		if n == 3 {
			lease = fmt.Sprintf(lease, set)
		}
		name := strings.Split(strings.Split(lease, `"worker":"`)[1], `"`)[0]
		key := fmt.Sprint("k", n)
		a.call(201, "POST", "/v1/queues/q/messages", fmt.Sprintf(`{"key":%q}`, key))
		got := a.call(200, "POST", "/v1/lease", lease)
		if id, ok := field(t, got, "set").(string); ok {
			set = id
		}
		if w := field(t, got, "messages", 0, "worker"); w != name {
			t.Errorf("%s: leased by %v", lease, w)
		}
		if w := field(t, a.call(200, "GET", "/v1/queues/q/keys/"+key, ""), "worker"); w != name {
			t.Errorf("%s: leased by %v, when looked up", lease, w)
		}
		if w := field(t, a.call(200, "GET", "/v1/queues/q/messages?state=leased", ""), "messages", 0, "worker"); w != name {
			t.Errorf("%s: leased by %v, in the list", lease, w)
		}
		a.call(200, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"bury","reason":%q}]}`, field(t, got, "messages", 0, "lease"), long))
		dead := a.call(200, "GET", "/v1/queues/q/messages?state=dead&order=desc&limit=1", "")
		if f := field(t, dead, "messages", 0, "failures", 0); field(t, f, "worker") != name || field(t, f, "error") != long[:engine.MaxReason] {
			t.Errorf("%s: failed with %v", lease, f)
		}
	}
	a.call(201, "POST", "/v1/queues/q/messages", `{"key":"read"}`)
	claimed := a.call(200, "POST", "/v1/queues/q/keys/read/claim", `{"worker":"reader"}`)
	if w := field(t, a.call(200, "GET", "/v1/queues/q/keys/read", ""), "worker"); w != "reader" || field(t, claimed, "worker") != w {
		t.Errorf("claimed by %v: %v", w, claimed)
	}
}

// A name that no worker may have is refused, with what is wrong.
func TestBadNamesOfWorkers(t *testing.T) {
	a := newAPI(t)
	a.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
	for name, says := range map[string]string{
		`a\nb`: "control character", `\u0000`: "control character", `\u009f`: "control character", strings.Repeat("w", 101): "101 bytes", strings.Repeat("é", 51): "102 bytes",
	} {
		for path, body := range map[string]string{
			"/v1/lease":                         `{"queues":["q"],"worker":"%s"}`,
			"/v1/lease?":                        `{"queues":["q"],"wait":"1s","worker":"%s"}`,
			"/v1/queues/q/keys/k/claim":         `{"worker":"%s"}`,
			"/v1/lease?" + url.QueryEscape("k"): `{"queues":["q"],"wait":"1s","keep":true,"worker":"%s"}`,
		} {
			got := a.call(400, "POST", path, fmt.Sprintf(body, name))
			if message := field(t, got, "error", "message").(string); !strings.Contains(message, says) || field(t, got, "error", "hint") == "" {
				t.Errorf("%s, %q: %v", path, name, got)
			}
		}
	}
	if state := field(t, a.call(200, "GET", "/v1/queues/q/keys/k", ""), "state"); state != "ready" {
		t.Errorf("it is %v", state)
	}
}
