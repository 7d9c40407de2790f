package httpengine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// Each figure moves with its cause: requests, waits, errors of the server, connections that
// are cut.
func TestFigures(t *testing.T) {
	eng := memengine.New(nil)
	defer eng.Close()
	c := tarry.New(eng, nil)
	defer c.Close()
	var broken, hangsUp atomic.Bool
	h := server.New(c, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case hangsUp.Load():
			panic(http.ErrAbortHandler)
		case broken.Load():
			http.Error(w, "broken", http.StatusBadGateway)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	defer s.Close()
	e := open(t, s.URL)
	defer e.Close()
	figure := func(name, label string) float64 {
		t.Helper()
		return enginetest.FigureOf(t, e, "remote_"+name, label)
	}
	push := func() error {
		_, err := e.Push(t.Context(), []engine.Message{{Queue: "q", Due: engine.When{In: time.Hour}}})
		return err
	}
	if up, dials := figure("up", ""), figure("dials", ""); up != 1 || dials != 1 {
		t.Errorf("once opened, up is %v after %v dials", up, dials)
	}
	asked := figure("request_seconds", "")
	if err := push(); err != nil || figure("request_seconds", "") != asked+1 {
		t.Errorf("%v requests after %v, %v", figure("request_seconds", ""), asked, err)
	}

	waited := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := e.LeaseWait(ctx, engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Minute})
		waited <- err
	}()
	servertest.Await(t, "a wait", func() error {
		if figure("waiting", "") != 1 {
			return errors.New("there is none")
		}
		return nil
	})
	cancel()
	<-waited
	servertest.Await(t, "the end of the wait", func() error {
		if waiting, waits := figure("waiting", ""), figure("wait_seconds", ""); waiting != 0 || waits != 1 {
			return fmt.Errorf("%v wait after %v waits", waiting, waits)
		}
		return nil
	})

	broken.Store(true)
	if err := push(); err == nil || figure("failures", "server_error") != 1 || figure("up", "") != 1 {
		t.Errorf("%v, %v errors", err, figure("failures", "server_error"))
	}
	hangsUp.Store(true)
	dials := figure("dials", "")
	if err := push(); !errors.Is(err, engine.ErrUnavailable) || figure("failures", "unanswered") != 1 || figure("up", "") != 0 {
		t.Errorf("%v, %v without an answer, up is %v", err, figure("failures", "unanswered"), figure("up", ""))
	}
	broken.Store(false)
	hangsUp.Store(false)
	s.CloseClientConnections()
	servertest.Await(t, "a push on a new connection", func() error { // others may still be taken for open
		if err := push(); err != nil || figure("up", "") != 1 || figure("dials", "") <= dials {
			return fmt.Errorf("%v; up is %v after %v dials", err, figure("up", ""), figure("dials", ""))
		}
		return nil
	})
}
