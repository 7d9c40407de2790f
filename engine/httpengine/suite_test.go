package httpengine_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// serve runs a server for an engine and returns its URL.
func serve(t testing.TB, eng engine.Engine) string {
	t.Helper()
	c := tarry.New(eng, nil)
	s := httptest.NewServer(watched(t, server.New(c, &server.Config{MaxRequest: 2 * engine.MaxAtomicBytes})))
	t.Cleanup(func() {
		_ = c.Close()
		s.Close()
		_ = eng.Close()
	})
	return s.URL
}

func open(t testing.TB, url string) *httpengine.Engine {
	t.Helper()
	if !strings.Contains(url, "?") {
		url += "?timeout=10m" // however busy this machine is
	}
	e, err := engine.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*httpengine.Engine)
}

func TestConformanceInjectedClock(t *testing.T) {
	clock := enginetest.NewClock()
	enginetest.Run(t, enginetest.Harness{
		Open: func(t *testing.T) engine.Engine {
			return open(t, serve(t, memengine.New(&memengine.Config{Now: clock.Now})))
		},
		Clock:     clock,
		Histories: 5,
		By:        "127.0.0.1",
	})
}

func TestConformanceRealClock(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open:      func(t *testing.T) engine.Engine { return open(t, serve(t, memengine.New(nil))) },
		Histories: 2,
		By:        "127.0.0.1",
	})
}
