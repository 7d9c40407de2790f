package server_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		start := time.Now()
		if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"20s"}`); err != nil || !strings.HasPrefix(got, `200 {"messages":[],`) || time.Since(start) != 20*time.Second {
			t.Errorf("an idle poll: %s, %v after %v", got, err, time.Since(start))
		}
		s.call(201, "POST", "/v1/queues/q/messages", `{"key":"k","delay":"5s"}`)
		start = time.Now()
		if got, err := s.poll(t.Context(), `{"queues":["p","q"],"wait":"20s"}`); err != nil || !strings.Contains(got, `"key":"k"`) || time.Since(start) != 5*time.Second {
			t.Errorf("%s, %v after %v", got, err, time.Since(start))
		}
	})
}

// A client that leaves while it waits gets nothing, and takes nothing along.
func TestLongPollClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := s.poll(ctx, `{"queues":["q"],"wait":"20s"}`)
			gone <- err
		}()
		synctest.Wait()
		leave()
		if err := <-gone; err == nil {
			t.Error("an answer came")
		}
		synctest.Wait()
		s.call(201, "POST", "/v1/queues/q/messages", `{"key":"k"}`)
		synctest.Wait()
		if m := s.call(200, "GET", "/v1/queues/q/keys/k", ""); m["state"] != "ready" || m["attempt"] != 0.0 {
			t.Errorf("%v", m)
		}
	})
}

func TestShutdownEndsLongPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		var polls sync.WaitGroup
		for range 100 {
			polls.Go(func() {
				if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"60s"}`); err != nil || !strings.HasPrefix(got, `200 {"messages":[],`) {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		s.end()
		polls.Wait()
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// net/http answers by itself when it cannot read a request at all.
func TestUnreadableRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		for request, want := range map[string]int{
			"NONSENSE\r\n\r\n":                  400,
			"GET / HTTP/1.1\r\n\r\n":            400, // no Host
			"GET / HTTP/9.9\r\nHost: a\r\n\r\n": 505,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n":                501,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n": 431,
		} {
			w := s.wire()
			w.say(request)
			w.answer(want)
			_ = w.Close()
		}
	})
}
