package mysqltest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Shared returns the URL of an empty database for a test that only needs some MariaDB or
// MySQL: of the server that the environment variable TARRY_TEST_MYSQL_URL names, or else
// of one that is started once for all tests of the process. The test's end drops it.
func Shared(t testing.TB) string {
	t.Helper()
	return newDatabase(t, servertest.Shared("TARRY_TEST_MYSQL_URL", func() string { return sharedServer(t).URL() }))
}

var shared struct {
	mu     sync.Mutex
	server *Server
}

func sharedServer(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		shared.server = Start(servertest.Lasting(t), Settings("max_connections=500"))
	}
	return shared.server
}

// Database makes an empty database, and returns its URL. It goes with the server, or by Drop.
func (s *Server) Database() string {
	s.t.Helper()
	name := newName()
	s.Exec("CREATE DATABASE " + name)
	return at(s.t, s.URL(), func(u *url.URL) { u.Path = "/" + name })
}

// Drop drops a database that Database has made.
func (s *Server) Drop(database string) {
	s.t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Exec("DROP DATABASE " + strings.TrimPrefix(u.Path, "/"))
}

// newDatabase makes an empty database beside the one of a URL, and returns its URL; the
// test's end drops it.
func newDatabase(t testing.TB, beside string) string {
	t.Helper()
	name := newName()
	execute(t, beside, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, beside, "DROP DATABASE "+name) })
	return at(t, beside, func(u *url.URL) { u.Path = "/" + name })
}

func newName() string { return "tarry_test_" + strings.ToLower(rand.Text()) }

func execute(t testing.TB, url, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	db, err := open(t, url)
	if err == nil {
		_, err = db.ExecContext(ctx, query)
		_ = db.Close() // it has answered
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// at returns a URL with something in it changed.
func at(t testing.TB, was string, change func(*url.URL)) string {
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
	return at(t, of, func(u *url.URL) { u.User = url.User(user) })
}
