package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Exec runs statements in the database postgres, as its superuser. Without arguments
// there may be several, in one transaction.
func (s *Server) Exec(sql string, args ...any) {
	s.t.Helper()
	if err := s.exec(sql, args...); err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), sql, err)
	}
}

// Text runs a query there, and returns the text in its one row and column.
func (s *Server) Text(sql string, args ...any) string {
	s.t.Helper()
	text, err := s.text(sql, args...)
	if err != nil {
		s.t.Fatalf("%s: %s: %v", s.Addr(), sql, err)
	}
	return text
}

func (s *Server) exec(sql string, args ...any) error {
	return s.ask(func(ctx context.Context, p *pgxpool.Pool) error {
		_, err := p.Exec(ctx, sql, args...)
		return err
	})
}

func (s *Server) text(sql string, args ...any) (text string, err error) {
	err = s.ask(func(ctx context.Context, p *pgxpool.Pool) error {
		return p.QueryRow(ctx, sql, args...).Scan(&text)
	})
	return text, err
}

func (s *Server) ask(f func(context.Context, *pgxpool.Pool) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Not the test's context, which has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	if s.admin == nil {
		var err error
		if s.admin, err = pgxpool.New(ctx, s.URL()); err != nil {
			return err
		}
	}
	return f(ctx, s.admin)
}

// hangUp closes the connections of ask, lest they be found broken or unanswered.
func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
}

// Pool returns a pool for a URL, which the test's end closes.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
