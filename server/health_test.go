package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// unready is an engine that says why it is not ready, or never does.
type unready struct {
	*memengine.Engine
	err   error
	hangs bool
}

func (u unready) Ready(ctx context.Context) error {
	if u.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return u.err
}

// What is wrong is told in one line, with what to do about it.
func TestReadyzSaysWhyNot(t *testing.T) {
	for _, c := range []struct {
		engine              unready
		status              int
		code, message, hint string
	}{
		{unready{}, 200, "", "", ""},
		{unready{err: &engine.Error{Op: "ready", Err: engine.ErrNoSpace, Hint: "free some space"}}, 507, "limit", "pushes fail: ", "free some space"},
		{unready{err: &engine.Error{Op: "ready", Err: fmt.Errorf("%w: sync: EIO", engine.ErrUnavailable), Hint: "open it again"}}, 503, "unavailable", "sync: EIO", "open it again"},
		{unready{err: errors.New("odd")}, 503, "unavailable", "odd", "see to what is behind the engine mem"},
		{unready{hangs: true}, 503, "unavailable", "has not answered for 2s", "its disk, its server"},
	} {
		c.engine.Engine = memengine.New(nil)
		client := tarry.New(c.engine, nil)
		a := &api{TB: t, c: client, s: newServer(t, client, nil)}
		w := a.send("GET", "/readyz", "")
		if w.Code != c.status {
			t.Errorf("%v: status %d, want %d: %s", c.engine.err, w.Code, c.status, w.Body)
		}
		if c.code != "" {
			code, message := checkError(t, w)
			if code != c.code || !strings.Contains(message, c.message) || !strings.Contains(w.Body.String(), c.hint) || strings.Contains(message, "\n") || w.Header().Get("Retry-After") == "" {
				t.Errorf("%v: %s", c.engine.err, w.Body)
			}
		}
		if w := a.send("GET", "/healthz", ""); w.Code != 200 {
			t.Errorf("%v: healthz: status %d", c.engine.err, w.Code)
		}
		_ = client.Close()
		_ = c.engine.Close()
	}
}

// asked is a request to a handler that may wait.
type asked struct {
	*httptest.ResponseRecorder
	done chan struct{}
}

func askHandler(ctx context.Context, h http.Handler, method, path, body string) asked {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := asked{httptest.NewRecorder(), make(chan struct{})}
	go func() {
		defer close(w.done)
		h.ServeHTTP(w, r)
	}()
	return w
}

// While the store is being opened probes are answered, and all else waits for it.
func TestOpening(t *testing.T) {
	o := server.NewOpening(nil)
	now := func(status int, path string) *httptest.ResponseRecorder {
		t.Helper()
		w := askHandler(t.Context(), o, "GET", path, "")
		<-w.done
		if w.Code != status {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, status, w.Body)
		}
		return w.ResponseRecorder
	}
	now(200, "/healthz")
	if code, message := checkError(t, now(503, "/readyz")); code != "unavailable" || message != "the store is being opened" {
		t.Errorf("readyz: %s, %s", code, message)
	}
	push := askHandler(t.Context(), o, "POST", "/v1/queues/q/messages", `{"body":1}`)
	gone, leave := context.WithCancel(t.Context())
	left := askHandler(gone, o, "GET", "/v1/queues", "")
	leave()
	<-left.done
	select {
	case <-push.done:
		t.Errorf("a push did not wait for the store: %d %s", push.Code, push.Body)
	default:
	}
	a := newAPI(t)
	o.Opened(a.s.Server)
	<-push.done
	if push.Code != 201 {
		t.Errorf("the push that waited: %d %s", push.Code, push.Body)
	}
	now(200, "/readyz")
	now(200, "/v1/queues/q")
}
