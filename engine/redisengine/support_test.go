package redisengine

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// params returns a URL with further parameters, such as "shards=3".
func params(t testing.TB, rawURL string, more ...string) *url.URL {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, p := range more {
		name, value, _ := strings.Cut(p, "=")
		q.Add(name, value)
	}
	u.RawQuery = q.Encode()
	return u
}

// openURL opens an engine, which the caller closes.
func openURL(t testing.TB, rawURL string, more ...string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), params(t, rawURL, more...))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// openStore opens an engine, which is closed with the test.
func openStore(t testing.TB, rawURL string, more ...string) *Engine {
	t.Helper()
	e := openURL(t, rawURL, more...)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// openPatient opens an engine that waits for answers for as long as a busy machine takes.
func openPatient(t testing.TB, rawURL string, more ...string) *Engine {
	t.Helper()
	e := openStore(t, rawURL, more...)
	e.slack = longWait
	return e
}

// freshPrefix is a prefix that no other store has.
func freshPrefix() string { return strings.ToLower(rand.Text()) }

// plain is a message that is due now, with the defaults of the root package.
func plain(queue, key string) engine.Message {
	return engine.Message{
		Queue: queue, Key: key,
		Content: engine.Content{Body: []byte("body of " + key)},
		Terms:   engine.Terms{TTR: time.Hour},
	}
}

var (
	push    = enginetest.MustPush
	settle1 = enginetest.MustSettle
)

// leaseAll leases what is due of a queue until nothing more is.
func leaseAll(t testing.TB, e *Engine, queue string) []engine.Lease {
	t.Helper()
	var all []engine.Lease
	for range 1000 {
		g := enginetest.MustLease(t, e, queue, 1000)
		all = append(all, g.Messages...)
		if !g.More {
			return all
		}
	}
	t.Fatalf("%s says for ever that there is more", queue)
	return nil
}

// lease1 leases the one message of a queue that is due.
func lease1(t testing.TB, e *Engine, queue string) engine.Lease {
	t.Helper()
	all := leaseAll(t, e, queue)
	if len(all) != 1 {
		t.Fatalf("leased %d messages of %s, not 1", len(all), queue)
	}
	return all[0]
}

// fails fails the test unless err is an *engine.Error with an Op that wraps want and whose
// text contains all parts.
func fails(t testing.TB, err, want error, parts ...string) {
	t.Helper()
	var e *engine.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Op == "" {
		t.Errorf("the error is %v, not an *engine.Error of %v", err, want)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not say %q", err, part)
		}
	}
}

// eventually waits for cond.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	giveUp := time.After(longWait)
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 50*time.Millisecond) {
		select {
		case <-giveUp:
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(wait):
		}
	}
}
