package rabbittest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Shared returns the URL of an empty vhost, for a test that needs no control of the broker.
// The broker is the one in TARRY_TEST_RABBIT_URL, or else one that is started once for all
// tests of the process. The vhost is deleted at the end of the test.
//
// A broker in TARRY_TEST_RABBIT_URL needs the plugin rabbitmq_management, on port 15672 or
// at TARRY_TEST_RABBIT_MANAGEMENT_URL, and a user with administrator rights.
func Shared(t testing.TB) string {
	t.Helper()
	if at := os.Getenv("TARRY_TEST_RABBIT_URL"); at != "" {
		return managedVhost(t, at)
	}
	s, name := shared.Get(t, func(t testing.TB) *Server { return Start(t) }), servertest.NewName()
	t.Cleanup(func() { s.Eval(fmt.Sprintf("rabbit_vhost:delete(<<%q>>, <<%q>>).", name, tester)) })
	return s.vhost(name)
}

var shared servertest.Once[*Server]

// Vhost makes an empty vhost and returns its URL. The vhost ends with the broker.
func (s *Server) Vhost() string {
	s.t.Helper()
	return s.vhost(servertest.NewName())
}

func (s *Server) vhost(name string) string {
	s.t.Helper()
	s.Eval(fmt.Sprintf("rabbit_vhost:add(<<%q>>, <<%q>>).", name, tester))
	s.Eval(fmt.Sprintf("rabbit_auth_backend_internal:set_permissions(<<%q>>, <<%q>>, <<%q>>, <<%q>>, <<%q>>, <<%q>>).",
		"guest", name, ".*", ".*", ".*", tester))
	return s.URL() + "/" + name
}

// tester is the user that creates vhosts.
const tester = "rabbittest"

// managedVhost makes a vhost by the management API of a URL's broker.
func managedVhost(t testing.TB, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	api := &url.URL{Scheme: "http", Host: net.JoinHostPort(u.Hostname(), "15672")}
	if other := os.Getenv("TARRY_TEST_RABBIT_MANAGEMENT_URL"); other != "" {
		if api, err = url.Parse(other); err != nil {
			t.Fatal(err)
		}
	}
	if api.User == nil {
		api.User = u.User
	}
	name := servertest.NewName()
	vhost := api.JoinPath("api", "vhosts", name)
	manage(t, http.MethodPut, vhost, "")
	t.Cleanup(func() { manage(t, http.MethodDelete, vhost, "") })
	manage(t, http.MethodPut, api.JoinPath("api", "permissions", name, u.User.Username()), `{"configure":".*","write":".*","read":".*"}`)
	u.Path = "/" + name
	return u.String()
}

func manage(t testing.TB, method string, at *url.URL, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, at.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(answer.Body) // what has arrived
		t.Fatalf("%s %s: %s: %s", method, at.Redacted(), answer.Status, text)
	}
}
