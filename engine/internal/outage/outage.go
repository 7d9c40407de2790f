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

// Server is a server with databases that a test may stop and kill.
type Server interface {
	Addr() string
	Kill()
	Stop()
	Restart()
	Database() (url string) // makes an empty one
}

const (
	queue = "orders"

	// leaseTTR bounds how long a lease lasts whose grant was lost.
	leaseTTR = 2 * time.Second

	// patience bounds the wait for recovery, on a slow machine.
	patience = 2 * time.Minute
)

// With returns a URL with one more option.
func With(t testing.TB, raw, option, value string) string {
	t.Helper()
	return servertest.At(t, raw, func(u *url.URL) {
		options := u.Query()
		options.Set(option, value)
		u.RawQuery = options.Encode()
	})
}

// Open opens a store, and creates it if it does not exist. The end of the test closes it.
func Open(t testing.TB, raw string) *tarry.Client {
	t.Helper()
	cfg := &tarry.Config{Logger: slog.New(slog.DiscardHandler)} // many warnings are expected
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

// Says fails the test unless an error is of a kind and has, in one line, a hint that contains
// a text.
func Says(t testing.TB, err, kind error, hint string) {
	t.Helper()
	var e *engine.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Hint, hint) || strings.ContainsAny(err.Error(), "\n\t") {
		t.Errorf("the error is %v; want %q with the hint %q", err, kind, hint)
	}
}

// unavailable returns a function that fails the test on any error but ErrUnavailable.
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
