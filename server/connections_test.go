package server_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/server"
)

const wait20 = `{"queues":["q"],"wait":"20s"}`

// One connection too many gets an answer, not silence.
func TestMaxConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 3})
		defer s.end()
		var busy []*wire
		for range 3 {
			w := s.wire()
			w.say(request("POST", "/v1/lease", wait20))
			busy = append(busy, w)
		}
		synctest.Wait()
		start := time.Now()
		late := s.wire()
		took := late.say(request("POST", "/v1/queues/q/messages", strings.Repeat(" ", 10<<10)))
		if got := late.answer(503); !strings.Contains(got, `"unavailable"`) {
			t.Error(got)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("it waited %v", d)
		}
		<-took
		_ = late.Close()
		if q := s.call(200, "GET", "/v1/queues/q", ""); q["ready"] != 0.0 {
			t.Errorf("%v", q)
		}

		busy[0].answer(200) // its wait is over: it is idle
		busy[1].answer(200)
		_ = busy[2].Close()
		time.Sleep(time.Second)
		synctest.Wait()
		w := s.wire() // in the place of the one that left
		w.say(request("POST", "/v1/queues/p/messages", `{}`))
		w.answer(201)
		_ = w.Close()
		busy[0].say(request("POST", "/v1/queues/p/messages", `{}`))
		busy[0].answer(201)
		_ = busy[0].Close()
		_ = busy[1].Close()
	})
}

// Connections that rest make room, that which has rested for longest first.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 3})
		defer s.end()
		use := func(w *wire) {
			t.Helper()
			w.say(request("POST", "/v1/queues/q/messages", `{}`))
			w.answer(201)
			time.Sleep(time.Second)
		}
		a, b, c := s.wire(), s.wire(), s.wire()
		use(a)
		use(b)
		use(c)
		use(a)
		d := s.wire() // in the place of b
		use(d)
		b.ended()
		use(a)
		use(c)
		e := s.wire() // in the place of d
		use(e)
		d.ended()
		for _, w := range []*wire{a, c, e} {
			use(w)
			_ = w.Close()
		}
	})
}

// Connections that have said nothing yet make room too, once they had the time to.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 2})
		defer s.end()
		silent, half := s.wire(), s.wire()
		half.say("GET /v1/info HTTP/1.1\r\n")
		synctest.Wait()
		early := s.wire()
		early.say(request("POST", "/v1/queues/q/messages", `{}`))
		early.answer(503)
		_ = early.Close()
		time.Sleep(time.Second)
		w := s.wire()
		silent.ended()
		w.say(request("POST", "/v1/queues/q/messages", `{}`))
		w.answer(201)
		half.say("Host: localhost\r\n\r\n")
		half.answer(200)
		_ = w.Close()
		_ = half.Close()
	})
}

// Refusing is bounded as well: in number, and in time for those who say nothing.
func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 1})
		defer s.end()
		busy := s.wire()
		busy.say(request("POST", "/v1/lease", wait20))
		synctest.Wait()
		start := time.Now()
		var silent []*wire
		for range 64 {
			silent = append(silent, s.wire())
		}
		synctest.Wait()
		s.wire().ended()
		if d := time.Since(start); d > 0 {
			t.Errorf("one too many was left open for %v", d)
		}
		for _, w := range silent {
			w.ended()
		}
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("the silent were left open for %v", d)
		}
		busy.answer(200)
		_ = busy.Close()
	})
}

// Over a real network too the answer arrives, whatever the client sends.
func TestMaxConnectionsOverTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveListener(t, &server.Config{MaxConnections: 1}, ln)
	defer s.end()
	busy := s.wire()
	busy.say("POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 29\r\n\r\n")
	if _, err := busy.in.ReadString('\n'); err != nil { // 100 Continue: it is being served
		t.Fatal(err)
	}
	for range 20 {
		w := s.wire()
		w.say(request("POST", "/v1/queues/q/messages", strings.Repeat(" ", 60<<10)))
		w.answer(503)
		_ = w.Close()
	}
	_ = busy.Close()
}
