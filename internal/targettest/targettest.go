// Package targettest has helpers for the tests of all targets: messages, and checks of Sends.
package targettest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/forward"
)

// Patience bounds every wait.
const Patience = time.Minute

// Message returns a message of the queue orders in its second attempt.
func Message(id uint64, body string, headers ...forward.Header) *tarry.Message[[]byte] {
	m := &tarry.Message[[]byte]{Body: []byte(body), Info: tarry.Info{
		ID: engine.ID(id), Queue: "orders", Key: "order-" + engine.ID(id).String(), Attempt: 2,
		Created: time.UnixMilli(1_700_000_000_000),
		Due:     time.Date(2026, 5, 4, 3, 2, 1, 20e6, time.UTC),
	}}
	m.ContentType, m.Headers = "text/plain", headers
	return m
}

// Open opens a target and closes it at the end of the test. The timeout is Patience unless the
// options set one.
func Open(t testing.TB, rawURL string, o *forward.Options) forward.Target {
	t.Helper()
	patient := forward.Options{}
	if o != nil {
		patient = *o
	}
	if patient.Timeout == 0 {
		patient.Timeout = Patience
	}
	target, err := forward.Open(rawURL, &patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	return target
}

// Send sends a message that must succeed.
func Send(t testing.TB, target forward.Target, m *tarry.Message[[]byte]) {
	t.Helper()
	if err := target.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// SendMany sends twenty messages from each goroutine, with ids from 1 on. All must succeed. It
// returns their number.
func SendMany(t testing.TB, target forward.Target, goroutines int, message func(id uint64) *tarry.Message[[]byte]) int {
	t.Helper()
	const each = 20
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for j := range each {
				if err := target.Send(t.Context(), message(uint64(1+each*i+j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return each * goroutines
}

// Recovers sends a message repeatedly until it succeeds.
func Recovers(t testing.TB, target forward.Target, m *tarry.Message[[]byte]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for {
		err := target.Send(ctx, m)
		if err == nil {
			return
		}
		if Buried(err) {
			t.Fatalf("buried: %v", err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("it does not recover: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Fails sends a message repeatedly until it is retried with an error that contains all parts.
// A Send may succeed before the broker is in trouble, or time out before it learns why.
func Fails(t testing.TB, target forward.Target, m *tarry.Message[[]byte], parts ...string) {
	t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(10 * time.Millisecond) {
		err := target.Send(t.Context(), m)
		asExpected := err != nil && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) })
		if asExpected || Buried(err) || time.Now().After(end) {
			Retried(t, err, parts...)
			return
		}
	}
}

// Retried fails the test unless err retries the message, contains all parts on one line, and
// contains no password. Passwords in tests are "geheim".
func Retried(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil || Buried(err) {
		t.Errorf("it is not retried: %v", err)
		return
	}
	says(t, err, parts)
}

// BuriedWith is like Retried, for an error that buries the message.
func BuriedWith(t testing.TB, err error, parts ...string) {
	t.Helper()
	if !Buried(err) {
		t.Errorf("it is not buried: %v", err)
		return
	}
	says(t, err, parts)
}

func says(t testing.TB, err error, parts []string) {
	t.Helper()
	text := err.Error()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the error %q does not say %q", text, part)
		}
	}
	if strings.ContainsAny(text, "\r\n") || strings.Contains(text, "geheim") {
		t.Errorf("the error %q has more than one line, or a password", text)
	}
	var e *tarry.Error
	if !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("the error %q does not say what to do", text)
	}
}

// Buried reports whether the error of a Send buries its message.
func Buried(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), tarry.Bury(nil).Error()+": ")
}

// RefusedURLs fails the test unless each URL is refused with its part in the text. The scheme
// must also refuse secrets, which only webhooks use. unconfigured is the error of a target
// without a configuration.
func RefusedURLs(t testing.TB, scheme string, parts map[string]string, unconfigured error) {
	t.Helper()
	for u, part := range parts {
		refused(t, u, nil, part)
	}
	refused(t, scheme+"://h", &forward.Options{Secrets: []string{"whsec_geheim"}}, "signed")
	if !errors.Is(unconfigured, tarry.ErrInvalid) {
		t.Errorf("without a configuration: %v", unconfigured)
	}
}

// refused fails the test unless a URL is refused with this part in the text.
func refused(t testing.TB, rawURL string, o *forward.Options, part string) {
	t.Helper()
	target, err := forward.Open(rawURL, o)
	if err == nil {
		_ = target.Close()
		t.Errorf("%s is opened", rawURL)
		return
	}
	if !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("%s: %v is no ErrInvalid", rawURL, err)
	}
	says(t, err, []string{part})
}
