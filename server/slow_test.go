package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server"
)

// fill pushes eight messages of half a megabyte.
func (s *served) fill(queue string) {
	body := make([]byte, 1<<19)
	for i := range 8 {
		if _, err := s.c.Push(context.Background(), queue, body, tarry.Key(fmt.Sprint(i)), tarry.ContentType("application/octet-stream"), tarry.Isolate(false)); err != nil {
			s.Fatal(err)
		}
	}
}

// want wants so many messages in a state.
func (s *served) want(queue, state string, n float64) {
	s.Helper()
	synctest.Wait()
	if q := s.call(200, "GET", "/v1/queues/"+queue, ""); q[state] != n {
		s.Errorf("%v messages are %s, want %v", q[state], state, n)
	}
}

const leaseAll = `{"queues":["q"],"max":1000,"ttr":"1h"}`

// A client that reads slowly, but goes on reading, gets all there is.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{WriteTimeout: time.Second})
		defer s.end()
		s.fill("q")
		w := s.wire()
		start := time.Now()
		w.say(request("POST", "/v1/lease", leaseAll))
		w.in = bufio.NewReaderSize(slow{w.Conn, 32 << 10, 300 * time.Millisecond}, 32<<10)
		w.answer(200)
		if d := time.Since(start); d < 45*time.Second {
			t.Errorf("%v is not slow", d)
		}
		_ = w.Close()
		s.want("q", "leased", 8)
	})
}

// One that stops reading is cut, and what it was to get goes to others.
func TestReaderThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{WriteTimeout: time.Second})
		defer s.end()
		s.fill("q")
		for _, path := range []string{"/v1/lease", "/v1/queues/q/keys/3/claim"} {
			w := s.wire()
			body := leaseAll
			if strings.HasSuffix(path, "claim") {
				body = ""
			}
			<-w.say(request("POST", path, body))
			if _, err := io.ReadFull(w.Conn, make([]byte, 200<<10)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1001 * time.Millisecond)
			s.want("q", "ready", 8)
			_ = w.Close()
		}
		if m := s.call(200, "GET", "/v1/queues/q/keys/3", ""); m["attempt"] != 0.0 {
			t.Errorf("attempt %v", m["attempt"])
		}
	})
}

// A viewer who does not read does not hold up the end of the server.
func TestViewerThatStops(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := serveConfig(t, &server.Config{ShutdownTimeout: time.Hour})
			w := s.wire()
			defer w.Close()
			<-w.say("GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if reads { // it stops after the first events
				_ = w.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(io.Discard, w.Conn)
			}
			synctest.Wait() // else the answer is being written
			began := time.Now()
			s.end()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the server ended after %s", took)
			}
		})
	}
}

// Answers that nobody reads are bounded over all connections, as requests are.
func TestAnswersHeldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxRequest: 4 << 20, MaxBuffered: 8 << 20, WriteTimeout: 1000 * time.Hour})
		defer s.end()
		s.fill("q")
		const list = "GET /v1/queues/q/messages?body=true&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
		before := heap()
		first := s.wire()
		<-first.say(list)
		synctest.Wait()
		for range 3 {
			w := s.wire()
			w.say(list)
			w.answer(503)
			w.say(request("POST", "/v1/lease", leaseAll))
			w.answer(503)
			w.say(request("POST", "/v1/queues/q/keys/1/claim", ""))
			w.answer(200)
			s.call(409, "DELETE", "/v1/queues/q/keys/1", "")
			s.release("q", "1")
			_ = w.Close()
		}
		s.want("q", "ready", 8)
		if grown := heap() - before; grown > 16<<20 {
			t.Errorf("%d bytes are held", grown)
		}
		first.answer(200)
		first.say(list)
		first.answer(200)
		_ = first.Close()
	})
}

// release gives back the message that holds a key, by letting its lease lapse.
func (s *served) release(queue, key string) {
	s.Helper()
	time.Sleep(time.Hour)
	if m := s.call(200, "GET", "/v1/queues/"+queue+"/keys/"+key, ""); m["state"] != "ready" {
		s.Errorf("%v", m["state"])
	}
}

// A request that the end of the server cuts off still gives back its leases before
// Serve returns: its caller closes the client then.
func TestShutdownReleasesWhatItCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{ShutdownTimeout: time.Second})
		s.fill("q")
		w := s.wire()
		<-w.say(request("POST", "/v1/lease", leaseAll))
		synctest.Wait()
		s.stop()
		if err := <-s.done; err == nil {
			t.Error("a request was cut off, and nothing is said about it")
		}
		if q, err := s.c.Queue(t.Context(), "q"); err != nil || q.Ready != 8 {
			t.Errorf("%+v, %v", q, err)
		}
		_ = w.Close()
		_ = s.c.Close()
	})
}
