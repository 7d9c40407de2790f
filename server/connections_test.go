package server_test

import (
	"fmt"
	"net"
	"net/netip"
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

// Whatever a connection has said, as long as that is no whole request it makes room.
func TestConnectionsWithoutARequestMakeRoom(t *testing.T) {
	for name, said := range map[string]string{
		"nothing":                           "",
		"a byte":                            "G",
		"half a head":                       "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n",
		"half a body":                       "POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
		"no more":                           request("POST", "/v1/queues/q/messages", `{}`) + "P",
		"a flood of a body that is refused": "POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveConfig(t, &server.Config{MaxConnections: 3, ReadTimeout: time.Minute, ReadHeaderTimeout: time.Minute})
				defer s.end()
				for range 3 {
					w := s.wire()
					defer w.Close()
					w.say(said)
					if strings.HasSuffix(said, "P") {
						w.answer(201)
					}
				}
				time.Sleep(200 * time.Millisecond)
				synctest.Wait()
				var honest []*wire
				for _, asked := range []string{"GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n", request("POST", "/v1/lease", wait20), request("POST", "/v1/lease", wait20)} {
					w := s.wire()
					defer w.Close()
					w.say(asked)
					synctest.Wait()
					honest = append(honest, w)
				}
				time.Sleep(time.Second)
				w := s.wire() // a request at work makes no room, however long it has been
				w.say(request("GET", "/v1/info", ""))
				w.answer(503)
				_ = w.Close()
				if line, err := honest[0].in.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
					t.Errorf("%s, %v", line, err)
				}
				for _, w := range honest[1:] {
					w.answer(200)
				}
			})
		})
	}
}

// A connection whose client sends a body makes room after those that have asked nothing.
func TestBodiesMakeRoomLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 2})
		defer s.end()
		whole := request("POST", "/v1/queues/q/messages", `{}`)
		sends := s.wire()
		defer sends.Close()
		sends.say(whole[:len(whole)-1])
		time.Sleep(time.Second)
		silent := s.wire()
		defer silent.Close()
		time.Sleep(time.Second)
		honest := s.wire()
		defer honest.Close()
		silent.ended()
		sends.say(whole[len(whole)-1:])
		sends.answer(201)
	})
}

// from is a connection as from another address.
type from struct {
	net.Conn
	address netip.Addr
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.address, 1234))
}

// wireFrom is a connection from an address.
func (s *served) wireFrom(address string) *wire {
	ours, theirs := net.Pipe()
	s.ln.conns <- from{theirs, netip.MustParseAddr(address)}
	return s.over(ours)
}

// Who holds most of the connections without a request gives way first, and of its own the
// oldest, however new they are; of IPv6 a network counts as one.
func TestEachAddressHasAShareOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 4})
		defer s.end()
		honest := s.wireFrom("192.0.2.1")
		defer honest.Close()
		honest.say(request("POST", "/v1/queues/q/messages", `{}`))
		honest.answer(201)
		var silent []*wire
		for i := range 3 {
			time.Sleep(time.Second)
			silent = append(silent, s.wireFrom(fmt.Sprintf("2001:db8::%d", i+1)))
			defer silent[i].Close()
		}
		for i := range 20 {
			time.Sleep(time.Second)
			silent = append(silent, s.wireFrom(fmt.Sprintf("2001:db8::%d:1", i+1)))
			defer silent[i+3].Close()
			silent[i].ended()
		}
		honest.say(request("POST", "/v1/queues/q/messages", `{}`))
		honest.answer(201)
		other := s.wireFrom("192.0.2.2")
		defer other.Close()
		silent[20].ended()
		other.say(request("POST", "/v1/queues/q/messages", `{}`))
		other.answer(201)
	})
}

// Beyond the connections that are told that they are too many none is left open.
func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 1})
		defer s.end()
		busy := s.wire()
		busy.say(request("POST", "/v1/lease", wait20))
		synctest.Wait()
		var refused []*wire
		for range 64 {
			w := s.wire()
			defer w.Close()
			refused = append(refused, w)
		}
		synctest.Wait()
		s.wire().ended()
		for _, w := range refused {
			w.say(request("POST", "/v1/queues/q/messages", `{}`))
			w.answer(503)
			w.ended()
		}
		for range 64 {
			silent := s.wire()
			defer silent.Close()
		}
		time.Sleep(time.Second)
		for range 100 { // the silent make room
			w := s.wire()
			w.say(request("GET", "/v1/info", ""))
			w.answer(503)
			_ = w.Close()
			synctest.Wait()
		}
		busy.answer(200)
		_ = busy.Close()
	})
}

// The server does not wait for the request of a connection that has sent none.
func TestShutdownWaitsForNoFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		for _, said := range []string{"", "G", "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n"} {
			w := s.wire()
			defer w.Close()
			w.say(said)
		}
		synctest.Wait()
		began := time.Now()
		s.end()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the server ended after %s", took)
		}
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
	busy.say(request("POST", "/v1/lease", `{"queues":["q"],"wait":"60s"}`))
	for s.s.Waits() == 0 { // until it is served, its client makes room for others
		time.Sleep(time.Millisecond)
	}
	for range 20 {
		w := s.wire()
		w.say(request("POST", "/v1/queues/q/messages", strings.Repeat(" ", 60<<10)))
		w.answer(503)
		_ = w.Close()
	}
	_ = busy.Close()
}
