package server_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tarryhq/tarry/server"
)

// ask sends a request as one with this Host, these headers ("Name: value" each) and
// an address of the server's to which it came, and returns the answer.
func (a *api) ask(method, path, host, local string, headers ...string) *httptest.ResponseRecorder {
	body := ""
	if method == "POST" {
		body = "{}"
	}
	ctx := a.Context()
	if local != "" {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(local)))
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
		if name == "TLS" {
			r.TLS = new(tls.ConnectionState)
		}
	}
	w := httptest.NewRecorder()
	a.s.ServeHTTP(w, r)
	return w
}

// The server answers for its own names and addresses alone.
func TestHosts(t *testing.T) {
	a := newAPI(t)
	told := &api{TB: t, c: a.c, s: newServer(t, a.c, &server.Config{Hosts: []string{
		"Tarry.Example.com", "*.svc.cluster.local", "192.0.2.7", "2001:db8::7", "[2001:db8::8]", "dot.example.", "no name", "*", "",
	}})}
	for _, c := range []struct {
		host, local string
		plain, told int
	}{
		{"localhost", "", 200, 200},
		{"localhost:8277", "", 200, 200},
		{"LocalHost.:9000", "", 200, 200},
		{"tarry.localhost", "", 200, 200},
		{"127.0.0.1:8277", "", 200, 200},
		{"127.9.9.9", "", 200, 200},
		{"[::1]:8277", "", 200, 200},
		{"[::ffff:127.0.0.1]", "", 200, 200},
		{"192.168.1.5:8277", "192.168.1.5:8277", 200, 200},
		{"192.168.1.5:80", "[::ffff:192.168.1.5]:8277", 200, 200},
		{"[fe80::1]:8277", "[fe80::1%eth0]:8277", 200, 200},

		{"tarry.example.com", "", 403, 200},
		{"TARRY.example.com.:443", "", 403, 200},
		{"dot.example", "", 403, 200},
		{"a.b.svc.cluster.local:8277", "", 403, 200},
		{"192.0.2.7", "", 403, 200},
		{"[2001:db8::7]:8277", "", 403, 200},
		{"[2001:db8:0::8]", "", 403, 200},

		{"evil.example", "127.0.0.1:8277", 403, 403},
		{"evil.example:8277", "127.0.0.1:8277", 403, 403},
		{"tarry.example.com.evil.example", "", 403, 403},
		{"xtarry.example.com", "", 403, 403},
		{"svc.cluster.local", "", 403, 403},
		{".svc.cluster.local", "", 403, 403},
		{"localhost.evil.example", "", 403, 403},
		{"127.0.0.1.evil.example", "", 403, 403},
		{"evillocalhost", "", 403, 403},
		{".localhost", "", 403, 403},
		{"192.168.1.5:8277", "127.0.0.1:8277", 403, 403},
		{"192.168.1.6:8277", "192.168.1.5:8277", 403, 403},
		{"0.0.0.0:8277", "127.0.0.1:8277", 403, 403},
		{"[::]", "[::1]:8277", 403, 403},
		{"", "127.0.0.1:8277", 403, 403},
		{"localhost:", "", 403, 403},
		{"localhost:http", "", 403, 403},
		{"localhost:123456", "", 403, 403},
		{"user@localhost", "", 403, 403},
		{"localhost:1@evil.example", "", 403, 403},
		{"evil.example/localhost", "", 403, 403},
		{"::1", "", 403, 403},
		{"[::1", "", 403, 403},
		{"[::1]x", "", 403, 403},
		{"[::1]x:80", "", 403, 403},
		{"[localhost]", "", 403, 403},
		{"[127.0.0.1]", "", 403, 403},
		{"no name", "", 403, 403},
		{"*", "", 403, 403},
	} {
		for s, want := range map[*api]int{a: c.plain, told: c.told} {
			for _, method := range []string{"GET", "POST"} {
				path := map[string]string{"GET": "/v1/queues", "POST": "/v1/queues/q/resume"}[method]
				w := s.ask(method, path, c.host, c.local)
				if w.Code != want {
					t.Errorf("Host %q at %q, told: %v: %s answers %d, want %d", c.host, c.local, s == told, method, w.Code, want)
				}
				if w.Code == 403 {
					if code, message := checkError(t, w); code != "forbidden" || !strings.Contains(message, "host") {
						t.Errorf("%q: %s, %s", c.host, code, message)
					}
				}
			}
		}
	}
	if w := a.ask("GET", "/v1/queues", "Evil.Example:80", ""); !strings.Contains(w.Body.String(), "--host evil.example\"") {
		t.Errorf("it does not say what to do: %s", w.Body)
	}
	// Those that ask for the state of a pod know nothing but its address.
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, host := range []string{"10.1.2.3:8277", "anything.example", ""} {
			if w := a.ask("GET", path, host, "127.0.0.1:8277"); w.Code != 200 {
				t.Errorf("%s at %q: %d", path, host, w.Code)
			}
		}
	}
}

// A web page can call the server that it came from, and no other.
func TestOrigins(t *testing.T) {
	a := newAPI(t)
	a.s = newServer(t, a.c, &server.Config{Hosts: []string{"tarry.example.com"}})
	const site, mode, dest = "Sec-Fetch-Site: ", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"
	for _, c := range []struct {
		get, post int
		host      string
		headers   []string
	}{
		{200, 200, "localhost:8277", []string{"Origin: http://localhost:8277"}},
		{200, 200, "localhost:8277", []string{"Origin: http://localhost:8277", site + "same-origin"}},
		{200, 200, "LOCALHOST:80", []string{"Origin: http://localhost"}},
		{200, 200, "127.0.0.1", []string{"Origin: http://127.0.0.1:80"}},
		{200, 200, "[::1]:8277", []string{"Origin: http://[::1]:8277"}},
		{200, 200, "tarry.example.com", []string{"Origin: http://tarry.example.com"}},
		{200, 200, "tarry.example.com", []string{"Origin: https://tarry.example.com"}},
		{200, 200, "tarry.example.com:8443", []string{"Origin: https://tarry.example.com:8443"}},
		{200, 200, "localhost:8277", []string{"TLS: yes", "Origin: https://localhost:8277"}},
		{200, 200, "localhost:8277", []string{site + "none"}},
		{200, 200, "localhost:8277", nil},

		{403, 403, "localhost:8277", []string{"Origin: http://evil.example"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost:3000"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost"}},
		{403, 403, "localhost", []string{"Origin: http://localhost:8277"}},
		{403, 403, "localhost:8277", []string{"Origin: https://localhost:8277"}},
		{403, 403, "localhost:8277", []string{"TLS: yes", "Origin: http://localhost:8277"}},
		{403, 403, "localhost:8277", []string{"Origin: http://127.0.0.1:8277"}},
		{403, 403, "localhost:8277", []string{"Origin: http://tarry.example.com"}},
		{403, 403, "tarry.example.com", []string{"Origin: http://localhost:8277"}},
		{403, 403, "tarry.example.com", []string{"Origin: https://tarry.example.com:80"}},
		{403, 403, "localhost:8277", []string{"Origin: null"}},
		{403, 403, "localhost:8277", []string{"Origin: "}},
		{403, 403, "localhost:8277", []string{"Origin: file://"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost:8277/"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost:8277.evil.example"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost:8277", "Origin: http://evil.example"}},
		{403, 403, "localhost:8277", []string{site + "cross-site"}},
		{403, 403, "localhost:8277", []string{site + "same-site"}},
		{403, 403, "localhost:8277", []string{site + "same-origin", site + "cross-site"}},
		{403, 403, "localhost:8277", []string{"Origin: http://localhost:8277", site + "cross-site"}},
		{403, 403, "localhost:8277", []string{site + "cross-site", mode, "Sec-Fetch-Dest: iframe"}},
		{403, 403, "localhost:8277", []string{site + "cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}},
		{200, 403, "localhost:8277", []string{site + "cross-site", mode, dest}}, // a link that is followed
	} {
		for method, want := range map[string]int{"GET": c.get, "POST": c.post} {
			path := map[string]string{"GET": "/v1/queues", "POST": "/v1/queues/q/resume"}[method]
			w := a.ask(method, path, c.host, "", c.headers...)
			if w.Code != want {
				t.Errorf("%s at %s with %q: %d, want %d", method, c.host, c.headers, w.Code, want)
			}
			if w.Code == 403 {
				if code, message := checkError(t, w); code != "forbidden" || !strings.Contains(message, "origin") {
					t.Errorf("%q: %s, %s", c.headers, code, message)
				}
			}
		}
	}
	// A browser asks before anything that is not simple, and hears nothing it likes.
	w := a.ask("OPTIONS", "/v1/queues/q/keys/k", "localhost:8277", "", "Origin: http://evil.example", "Access-Control-Request-Method: DELETE")
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("a foreign page is told %s", name)
		}
	}
	if w.Code != 403 {
		t.Errorf("%d", w.Code)
	}
}

// The name counts wherever a request gives it, and one that gives none is not for us.
func TestHostsOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		for request, status := range map[string]int{
			"GET http://evil.example/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n": 403,
			"GET http://localhost/v1/info HTTP/1.1\r\nHost: evil.example\r\n\r\n": 200,
			"GET /v1/info HTTP/1.1\r\nHost:\r\n\r\n":                              403,
			"GET /v1/info HTTP/1.0\r\n\r\n":                                       403,
			"GET /v1/info HTTP/1.0\r\nHost: localhost\r\n\r\n":                    200,
			"GET /healthz HTTP/1.0\r\n\r\n":                                       200,
			"GET /readyz HTTP/1.0\r\n\r\n":                                        200,
			"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n":      400,
		} {
			w := s.wire()
			w.say(request)
			if status == 400 {
				w.unread(status)
			} else {
				w.answer(status)
			}
			_ = w.Close()
		}
	})
}

// On whatever address of the machine a request comes in, that address is a name of
// the server.
func TestHostsOfAWildcardListener(t *testing.T) {
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveListener(t, nil, ln)
	defer s.end()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, a := range addrs {
		ip := a.(*net.IPNet).IP
		if ip.IsLinkLocalUnicast() {
			continue // needs a zone
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(ip.String(), port))
		if err != nil {
			continue // an address that leads nowhere
		}
		tried++
		w := s.over(conn)
		w.say("GET /v1/info HTTP/1.1\r\nHost: " + net.JoinHostPort(ip.String(), port) + "\r\n\r\n")
		w.answer(200)
		w.say("GET /v1/info HTTP/1.1\r\nHost: 192.0.2.99:" + port + "\r\n\r\n")
		w.answer(403)
		_ = conn.Close()
	}
	if tried == 0 {
		t.Error("this machine has no address to try")
	}
}

func TestCheckHost(t *testing.T) {
	for host, ok := range map[string]bool{
		"tarry": true, "tarry.example.com": true, "tarry.example.com.": true, "*.example.com": true, "my_host-1": true, "192.0.2.7": true, "2001:db8::7": true, "[::1]": true,
		"": false, "*": false, "*.": false, ".": false, "a..b": false, "a.*.b": false, "a b": false, "http://tarry": false, "tarry:8277": false,
		"[::1]:8277": false, "[tarry]": false, "[192.0.2.7]": false, "fe80::1%eth0": false, "tarry/": false, "töö": false, "a,b": false,
	} {
		if err := server.CheckHost(host); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}
