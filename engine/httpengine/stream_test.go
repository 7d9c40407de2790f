package httpengine_test

import (
	"bufio"
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// streamed is an engine on a server that tells what changes.
func streamed(t *testing.T) (*httpengine.Engine, *tarry.Client) {
	t.Helper()
	c := tarry.New(memengine.New(nil), nil)
	s := httptest.NewServer(server.New(c, nil))
	e, err := engine.Open(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close()
		s.Close()
		_ = c.Close()
	})
	return e.(*httpengine.Engine), c
}

// until reads lines up to one that begins so.
func until(t *testing.T, lines *bufio.Scanner, begin string) string {
	t.Helper()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), begin) {
			return lines.Text()
		}
	}
	t.Fatalf("the stream ended before %q: %v", begin, lines.Err())
	return ""
}

func TestStreamTellsAndGoesOn(t *testing.T) {
	e, c := streamed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := ""
	for _, resumed := range []string{"false", "true"} {
		s, err := e.Stream(ctx, "/v1/live", "overview=all&queues=mail", last)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(s)
		if begin := until(t, lines, `data: {"now":`); !strings.Contains(begin, `"resumed":`+resumed) {
			t.Errorf("it begins with %s, behind %q", begin, last)
		}
		if _, err := c.Push(ctx, "mail", nil); err != nil { // nothing is told where nothing changes
			t.Fatal(err)
		}
		last = strings.TrimPrefix(until(t, lines, "id: "), "id: ")
		for !strings.Contains(until(t, lines, "data: "), `"queue":"mail"`) {
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // what had come
		}
		if lines.Err() == nil {
			t.Error("a stream that was closed ends as if the server had ended it")
		}
	}
}

func TestStreamEndsWithItsEngineAndItsContext(t *testing.T) {
	e, _ := streamed(t)
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []func(){cancel, func() { go e.Close() }} {
		s, err := e.Stream(ctx, "/v1/live", "", "")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(s)
		until(t, lines, "event: begin")
		end()
		for lines.Scan() {
		}
		if lines.Err() == nil {
			t.Error("it ends as if the server had ended it")
		}
		_ = s.Close()
		ctx = t.Context()
	}
	_ = e.Close()
	if _, err := e.Stream(t.Context(), "/v1/live", "", ""); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("on a closed engine: %v", err)
	}
}

func TestStreamRefused(t *testing.T) {
	e, _ := streamed(t)
	if _, err := e.Stream(t.Context(), "/v1/live", "overview=some", ""); !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), "overview: must be") {
		t.Errorf("a wrong query: %v", err)
	}
	if _, err := e.Stream(t.Context(), "/v1/nothing", "", ""); !errors.Is(err, tarry.ErrNotFound) {
		t.Errorf("a wrong path: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Stream(ctx, "/v1/live", "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}
