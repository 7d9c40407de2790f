package servertest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// SQL is a kind of server whose databases database/sql can open.
type SQL struct {
	// Variable is the environment variable with the URL of a server: see Shared.
	Variable string

	// URL is the URL for the superuser, with %s for the address.
	URL string

	// Open opens the database at a URL.
	Open func(url string) (*sql.DB, error)

	// Drop is the statement that drops the database %s and ends its connections.
	Drop string

	shared Once[string]
}

// Shared returns the URL of an empty database that is dropped at the end of the test. Its
// server is the one in Variable, or else one that is started once for all tests.
func (k *SQL) Shared(t testing.TB, start func(t testing.TB) (url string)) string {
	t.Helper()
	server := Shared(k.Variable, func() string { return k.shared.Get(t, start) })
	name := NewName()
	k.execute(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { k.execute(t, server, fmt.Sprintf(k.Drop, name)) })
	return database(t, server, name)
}

func database(t testing.TB, server, name string) string {
	t.Helper()
	return At(t, server, func(u *url.URL) { u.Path = "/" + name })
}

func (k *SQL) execute(t testing.TB, url, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*Patience) // it waits for a checkpoint
	defer cancel()
	db, err := k.Open(url)
	if err == nil {
		_, err = db.ExecContext(ctx, query)
		_ = db.Close() // the answer is there
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// SQLServer is a server of such a kind.
type SQLServer struct {
	*Server
	t    testing.TB
	kind *SQL

	mu    sync.Mutex
	admin *sql.DB // nil until needed
}

// Start starts a server.
func (k *SQL) Start(t testing.TB, c Command) *SQLServer {
	t.Helper()
	s := &SQLServer{t: t, kind: k}
	c.HangUp = s.hangUp
	s.Server = Start(t, c)
	return s
}

// URL returns the URL of the server's default database, for its superuser.
func (s *SQLServer) URL() string { return fmt.Sprintf(s.kind.URL, s.Addr()) }

// Database creates an empty database and returns its URL. It ends with the server or by Drop.
func (s *SQLServer) Database() string {
	s.t.Helper()
	name := NewName()
	s.Exec("CREATE DATABASE " + name)
	return database(s.t, s.URL(), name)
}

// Drop drops a database that Database made.
func (s *SQLServer) Drop(database string) {
	s.t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Exec(fmt.Sprintf(s.kind.Drop, strings.TrimPrefix(u.Path, "/")))
}

// Exec runs a statement in the database of URL.
func (s *SQLServer) Exec(query string, args ...any) {
	s.t.Helper()
	err := s.ask(func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), query, err)
	}
}

// Text runs a query in the database of URL, and returns its single value as text.
func (s *SQLServer) Text(query string, args ...any) string {
	s.t.Helper()
	text, err := s.Try(query, args...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), query, err)
	}
	return text
}

// Try is Text for a query that may fail.
func (s *SQLServer) Try(query string, args ...any) (text string, err error) {
	err = s.ask(func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, query, args...).Scan(&text)
	})
	return text, err
}

func (s *SQLServer) ask(f func(context.Context, *sql.DB) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Not the test's context: that has ended when cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if s.admin == nil {
		db, err := s.kind.Open(s.URL())
		if err != nil {
			return err
		}
		s.admin = db
	}
	return f(ctx, s.admin)
}

// hangUp closes the connections of ask, so that the next one makes a new one.
func (s *SQLServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		_ = s.admin.Close() // no query is running
		s.admin = nil
	}
}
