package server

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/server/access"
)

// FuzzReference: any queue and key come out of a path as they were escaped into it.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"a/b", "/", "//", "a b", "é", "%2F", "?", "#", "\xff/", "..a"} {
		f.Add("orders", s)
		f.Add(s, "k")
		f.Add(s, "/")
		f.Add("/", s)
	}
	var queue, key string
	s := &Server{cfg: (*Config)(nil).withDefaults(1), hosts: newHosts(nil)}
	s.table = []route{newRoute("GET", "/v1/queues/*/keys/*", access.Anyone, func(x *exchange, r *http.Request) error {
		ref, err := x.path.Ref()
		queue, key = ref.Queue, ref.Key
		return err
	}, nil)}
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
