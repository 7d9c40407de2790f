package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// FuzzMessage: whatever comes in, reading ends, accepts only JSON, and keeps the body
// as it stood.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"body":{"a":[1,2,{"b":null}]},"key":"k","delay":"1d12h"}`, `{"body_base64":"AAEC","content_type":"x/y"}`,
		`{"headers":{"a":"1","b":["2","3"]},"backoff":["1s","2m"],"ttr":"1s","priority":5}`, `{"headers":[["a","b"]],"due":"2030-01-01T00:00:00.5Z"}`,
		`{"key":"\u0061\ud83d\ude00","on_conflict":"keep_due","max_attempts":3,"expire_after":"1h"}`, `{"a":1}`, `[`, `{"body":1}}`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := new(input)
		in.parse(bytes.Clone(data))
		var m engine.Message
		got := in.message("message", &m)
		in.end()
		if in.failed() != nil {
			return
		}
		var std map[string]json.RawMessage
		if err := json.Unmarshal(data, &std); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		if got.has(fieldBody) && (!bytes.Contains(data, m.Body) || !json.Valid(m.Body)) {
			t.Fatalf("body %q of %q", m.Body, data)
		}
		if m.Due.In < 0 || m.ExpireAfter < 0 {
			t.Fatalf("negative: %+v", m)
		}
	})
}

// FuzzRequests reads all other requests.
func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"refs":[{"queue":"q","key":"k"},{"queue":"q","id":"7"}]}`))
	f.Add([]byte(`{"settlements":[{"lease":"t","do":"retry","delay":"1s","reason":"r"},{"lease":"t","do":"extend","ttr":"1s"}]}`))
	f.Add([]byte(`{"queues":["a","b"],"max":10,"wait":"20s","ttr":"60s"}`))
	f.Add([]byte(`{"messages":[{"queue":"q","body":1},{"queue":"q","nope":[{}]},3],"atomic":false}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(each func(in *input)) {
			in := new(input)
			in.parse(bytes.Clone(data))
			each(in)
			if in.failed() == nil && !json.Valid(data) {
				t.Fatalf("accepted %q", data)
			}
		}
		read(func(in *input) {
			if refs, bad := in.refs(); len(refs) != len(bad) {
				t.Fatal("refs and errors differ in number")
			}
		})
		read(func(in *input) { in.elements("settlements", func() { in.settlement() }) })
		read(func(in *input) { in.lease() })
		read(func(in *input) {
			b := new(batch)
			if in.batch(b); in.err == nil && b.wrong != nil && len(b.wrong) != len(b.msgs) {
				t.Fatal("messages and errors differ in number")
			}
		})
	})
}

// FuzzReference: any queue and key come out of a path as they were escaped into it.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"a/b", "/", "//", "a b", "é", "%2F", "?", "#", "\xff/", "..a"} {
		f.Add("orders", s)
		f.Add(s, "k")
		f.Add(s, "/")
		f.Add("/", s)
	}
	var queue, key string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/queues/{queue}/keys/{key}", func(_ http.ResponseWriter, r *http.Request) {
		q, ref, err := reference(r)
		if err != nil {
			panic(err)
		}
		queue, key = q, ref.Key
	})
	s := newServer(nil, (*Config)(nil).withDefaults(1))
	s.mux = mux
	f.Fuzz(func(t *testing.T, q, k string) {
		if q == "" || k == "" || q == "." || q == ".." || k == "." || k == ".." {
			return // no names
		}
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.URL.Path = "/v1/queues/" + q + "/keys/" + k
		r.URL.RawPath = "/v1/queues/" + url.PathEscape(q) + "/keys/" + url.PathEscape(k)
		queue, key = "", ""
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 200 || queue != q || key != k {
			t.Fatalf("status %d: queue %q, key %q; want %q, %q", w.Code, queue, key, q, k)
		}
	})
}

// FuzzHosts: no Host is taken but for the names that the server has, and no Origin but
// that of the request.
func FuzzHosts(f *testing.F) {
	for _, s := range []string{"localhost:8277", "[::1]:80", "a.localhost", "127.0.0.1", "tarry.example.com.", "x.example.net:443", "evil.example", "[::ffff:127.0.0.1]:1", "localhost:", "[", "]:"} {
		f.Add(s, "http://"+s, "")
		f.Add(s, "https://"+s, "same-origin")
	}
	own := regexp.MustCompile(`(?i)^((.+\.)?localhost|tarry\.example\.com|.+\.example\.net)\.?$`)
	h := newHosts([]string{"tarry.example.com", "*.example.net"})
	f.Fuzz(func(t *testing.T, host, origin, site string) {
		r := httptest.NewRequest("POST", "/v1/messages", nil)
		r.Host = host
		if origin != "" {
			r.Header["Origin"] = []string{origin}
		}
		if site != "" {
			r.Header["Sec-Fetch-Site"] = []string{site}
		}
		if h.admit(r) != nil {
			return
		}
		name := host
		if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
			name = host[:i]
		}
		if addr, err := netip.ParseAddr(strings.Trim(name, "[]")); !own.MatchString(name) && (err != nil || !addr.Unmap().IsLoopback()) {
			t.Fatalf("answered for %q", host)
		}
		if origin == "" {
			return
		}
		from, err := url.Parse(origin)
		if err != nil {
			return // no browser sends that
		}
		at, err := url.Parse(from.Scheme + "://" + host)
		if err != nil {
			return
		}
		port := func(u *url.URL) string {
			return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		if !strings.EqualFold(strings.TrimSuffix(from.Hostname(), "."), strings.TrimSuffix(at.Hostname(), ".")) || port(from) != port(at) || port(from) == "" || from.Path != "" {
			t.Fatalf("answered a page of %q at %q", origin, host)
		}
	})
}
