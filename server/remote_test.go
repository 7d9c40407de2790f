package server_test

import (
	"errors"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// How large bodies may be is set on the server: its clients need no word of their own.
func TestBodiesOfRemoteClients(t *testing.T) {
	mem := memengine.New(nil)
	defer mem.Close()
	own := tarry.New(mem, &tarry.Config{MaxBody: 3 << 20})
	defer own.Close()
	s := httptest.NewServer(server.New(own, nil))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := httpengine.Open(t.Context(), u, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	for most, cfg := range map[int]*tarry.Config{3 << 20: nil, 2 << 20: {MaxBody: 2 << 20}} {
		c := tarry.New(remote, cfg)
		defer c.Close()
		if c.MaxBody() != most {
			t.Errorf("%d bytes, want %d", c.MaxBody(), most)
		}
		if _, err := c.Push(t.Context(), "q", make([]byte, most)); err != nil {
			t.Error(err)
		}
		if _, err := c.Push(t.Context(), "q", make([]byte, most+1)); !errors.Is(err, tarry.ErrTooLarge) {
			t.Error(err)
		}
	}
	if tarry.New(mem, nil).MaxBody() != tarry.DefaultMaxBody {
		t.Error("the default of other engines has changed")
	}
}

// What is said of an outcome that is unknown fits what was asked.
func TestHintsOfUnknownOutcomes(t *testing.T) {
	for op, keys := range map[string]bool{"push": true, "push many": true, "lease": false, "ack": false} {
		err := &tarry.Error{Op: op, Err: tarry.ErrUnavailable, Hint: "no answer; the outcome is unknown"}
		if got := err.Error(); strings.Contains(got, "same key") != keys || !strings.Contains(got, "the outcome is unknown") {
			t.Errorf("%s: %s", op, got)
		}
	}
}
