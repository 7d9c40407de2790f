package servertest

import (
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Shared returns the URL of a server for a test that needs no control over it. If the
// environment variable is set, that server is used, whatever it holds. Otherwise start
// starts one.
func Shared(variable string, start func() (url string)) string {
	if url := os.Getenv(variable); url != "" {
		return url
	}
	return start()
}

// At returns a changed copy of a URL.
func At(t testing.TB, was string, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(was)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// As returns the URL of the same database for another user, without a password.
func As(t testing.TB, of, user string) string {
	t.Helper()
	return At(t, of, func(u *url.URL) { u.User = url.User(user) })
}

// NewName returns a new name for a database or vhost.
func NewName() string { return "tarry_test_" + strings.ToLower(rand.Text()) }

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
