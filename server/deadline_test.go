package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/server"
)

// Each wait of a connection has its own bound, whatever bound the one before had.
func TestDeadlinesOfAKeptConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute})
		defer s.end()
		text := request("POST", "/v1/queues/q/messages", `{"delay":"1h"}`)
		head := len(text) - len(`{"delay":"1h"}`) - 2
		begin := func() *wire {
			w := s.wire()
			for i, part := range []string{text[:20], text[20:head], text[head : head+10], text[head+10:]} {
				time.Sleep(time.Duration(i) * time.Second)
				<-w.say(part)
			}
			w.answer(201)
			time.Sleep(time.Minute - 1)
			w.say(text)
			w.answer(201)
			w.say(request("POST", "/v1/lease", wait20))
			w.answer(200)
			return w
		}
		for _, c := range []struct {
			said   string
			status int
			bound  time.Duration
		}{
			{"", 0, time.Minute},
			{text[:strings.Index(text, "Content-Type")], 0, 5 * time.Second},
			{text[:head+5], 408, 20 * time.Second}, // once for reading it, and once for what is still to come
		} {
			w := begin()
			start := time.Now()
			if c.said != "" {
				w.say(c.said)
			}
			if c.status != 0 {
				w.answer(c.status)
			}
			w.ended()
			if d := time.Since(start); d != c.bound {
				t.Errorf("after %q it was cut after %v, not %v", c.said, d, c.bound)
			}
			_ = w.Close()
		}
	})
}

// Also a short answer that nobody reads is not waited for much longer than said.
func TestShortAnswersNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{WriteTimeout: 8 * time.Second})
		defer s.end()
		for pause := range 10 {
			w := s.wire()
			w.say(request("POST", "/v1/queues/q/messages", `{}`))
			w.answer(201)
			time.Sleep(time.Duration(pause) * time.Second)
			start := time.Now()
			<-w.say(request("POST", "/v1/queues/q/messages", `{}`))
			<-w.say("more")
			if d := time.Since(start); d < 8*time.Second || d > 9*time.Second {
				t.Errorf("%d s after the last one it was cut after %v", pause, d)
			}
			_ = w.Close()
		}
	})
}
