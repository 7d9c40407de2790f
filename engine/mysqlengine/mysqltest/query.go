package mysqltest

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Exec runs a statement in the database mysql, as its superuser.
func (s *Server) Exec(query string, args ...any) {
	s.t.Helper()
	err := s.ask(func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), query, err)
	}
}

// Text runs a query there, and returns as a text what is in its one row and column.
func (s *Server) Text(query string, args ...any) (text string) {
	s.t.Helper()
	err := s.ask(func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, query, args...).Scan(&text)
	})
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), query, err)
	}
	return text
}

func (s *Server) ask(f func(context.Context, *sql.DB) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Not the test's context, which has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	if s.admin == nil {
		db, err := open(s.t, s.URL())
		if err != nil {
			return err
		}
		s.admin = db
	}
	return f(ctx, s.admin)
}

// hangUp closes the connections of ask, lest they be found broken or unanswered.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		_ = s.admin.Close() // nothing is asked any more
		s.admin = nil
	}
}

// Open opens the database of a URL, and closes it at the test's end.
func Open(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := open(t, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // its connections may be cut
	return db
}

func open(t testing.TB, url string) (*sql.DB, error) {
	t.Helper()
	conf := config(t, url)
	conf.Logger = &mysql.NopLogger{} // of what its errors say
	c, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// DSN is the data source name for go-sql-driver/mysql of a URL.
func DSN(t testing.TB, url string) string {
	t.Helper()
	return config(t, url).FormatDSN()
}

func config(t testing.TB, of string) *mysql.Config {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	return c
}
