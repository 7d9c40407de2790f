package redisengine

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"crypto/rand"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func rawURL() string { return "redis://127.0.0.1:7777" }

func suite(t *testing.T, raw string, shards int, clock *enginetest.Clock) {
	open := func(t *testing.T, prefix string) *Engine {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("prefix", prefix)
		q.Set("shards", strconv.Itoa(shards))
		u.RawQuery = q.Encode()
		e, err := Open(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		if clock != nil {
			e.stopped = clock.Now
		}
		return e
	}
	enginetest.Run(t, enginetest.Harness{
		Clock: clock,
		Open:  func(t *testing.T) engine.Engine { return open(t, strings.ToLower(rand.Text())) },
		Reopen: func(t *testing.T, e engine.Engine) engine.Engine {
			prefix := e.(*Engine).prefix
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return open(t, prefix)
		},
	})
}

func TestSuite1(t *testing.T) { suite(t, rawURL(), 1, enginetest.NewClock()) }
func TestSuite3(t *testing.T) { suite(t, rawURL(), 3, enginetest.NewClock()) }
func TestReal(t *testing.T) { suite(t, rawURL(), 3, nil) }
