package server_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// failing is an engine whose pushes all fail.
type failing struct {
	*memengine.Engine
	err error
}

func (f failing) Push(context.Context, []engine.Message) ([]engine.PushResult, error) {
	return nil, f.err
}

// A disk that is full for long is told once a minute, however many pushes it refuses, and what else fails
// meanwhile is told as well; of very many that fail otherwise some are.
func TestFailuresDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &failing{memengine.New(nil), engine.ErrNoSpace}
		c := tarry.New(e, nil)
		defer e.Close()
		defer c.Close()
		var log bytes.Buffer
		s := server.New(c, &server.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		fails := func(n int, err error, want ...string) {
			t.Helper()
			e.err = err
			log.Reset()
			for range n {
				r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/queues/q/messages", strings.NewReader(`{}`))
				r.Header.Set("Content-Type", "application/json")
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
			if lines := strings.Count(log.String(), "level=ERROR"); lines != len(want) {
				t.Errorf("%d lines of %d pushes that failed with %v, want %d", lines, n, err, len(want))
			}
			for _, w := range want {
				if !strings.Contains(log.String(), w) {
					t.Errorf("the log says nothing of %s: %s", w, &log)
				}
			}
		}
		fails(1000, engine.ErrNoSpace, "status=507 error=\"push q: no space left on disk: limit reached\" not_told=0")
		time.Sleep(30 * time.Second)
		fails(1000, engine.ErrNoSpace)
		fails(1, engine.ErrUnavailable, "status=503")
		time.Sleep(30 * time.Second)
		fails(1000, engine.ErrNoSpace, "not_told=1999")
		fails(1000, engine.ErrUnavailable, make([]string, 100)...)
		fails(1, context.DeadlineExceeded)
		time.Sleep(time.Second)
		fails(1, engine.ErrUnavailable, "not_told=901")
	})
}
