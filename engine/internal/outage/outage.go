package outage

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Server is a server with a database, which the test may end.
type Server interface {
	Addr() string
	Kill()
	Stop()
	Restart()
	Database() (url string) // an empty one
}

const (
	queue = "orders"

	// leaseTTR is how long a lease lasts of which nobody has heard.
	leaseTTR = 2 * time.Second

	// patience is how long it may take, on a slow machine, until all goes on.
	patience = 2 * time.Minute
)

// With returns a URL with an option more.
func With(t testing.TB, raw, option, value string) string {
	t.Helper()
	return servertest.At(t, raw, func(u *url.URL) {
		options := u.Query()
		options.Set(option, value)
		u.RawQuery = options.Encode()
	})
}

// Open opens a store, and makes it if it is not there; the test's end closes it.
func Open(t testing.TB, raw string) *tarry.Client {
	t.Helper()
	cfg := &tarry.Config{Logger: slog.New(slog.DiscardHandler)} // as there is much to be said
	c, err := tarry.Open(t.Context(), With(t, raw, "migrate", "true"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Says fails the test unless an error is of a kind, and says in one line what is to be done
// about it.
func Says(t testing.TB, err, kind error, hint string) {
	t.Helper()
	var e *engine.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Hint, hint) || strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("it says %v, and is to be %q, with %q", err, kind, hint)
	}
}

// unavailable returns what fails the test on any other error than that the database is not
// there.
func unavailable(t testing.TB) func(error) {
	return func(err error) {
		t.Helper()
		Says(t, err, tarry.ErrUnavailable, "")
	}
}

func unknown(err error) bool {
	return err != nil && strings.Contains(err.Error(), engine.HintUnknown)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
