package server_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/server"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Who only says that much will come gets no memory for it.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		before := heap()
		for range 50 {
			w := s.wire()
			defer w.Close()
			w.say("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8388608\r\n\r\n{")
		}
		synctest.Wait()
		if grown := heap() - before; grown > 10<<20 {
			t.Errorf("50 requests of 110 bytes hold %d bytes", grown)
		}
	})
}

// large is most of a request with one message whose body has n bytes; the rest is
// largeEnd.
func large(n int) (most, rest string) {
	text := request("POST", "/v1/messages", `{"messages":[{"queue":"large","body":"`+strings.Repeat("x", n)+`"}]}`)
	return text[:len(text)-1], text[len(text)-1:]
}

// What is sent and held at a time is bounded over all connections, and small requests
// go on all the same.
func TestRequestsHeldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxRequest: 1 << 20, MaxBuffered: 2 << 20})
		defer s.end()
		most, rest := large(900 << 10)
		first, second, third := s.wire(), s.wire(), s.wire()
		first.say(most)
		second.say(most)
		synctest.Wait()
		third.say(most + rest)
		third.answer(503)
		if got, err := s.poll(t.Context(), `{"queues":["q"]}`); err != nil || !strings.HasPrefix(got, "200 ") {
			t.Errorf("a small request: %s, %v", got, err)
		}
		first.say(rest)
		first.answer(200)
		third.say(most + rest)
		third.answer(200)
		_ = second.Close() // half a request holds nothing once its client has gone
		synctest.Wait()
		fourth := s.wire()
		<-first.say(most)
		<-fourth.say(most)
		first.say(rest)
		first.answer(200)
		fourth.say(rest)
		fourth.answer(200)
		for _, w := range []*wire{first, third, fourth} {
			_ = w.Close()
		}
	})
}

// A batch of many small items holds more than its request.
func TestItemsHeldAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxRequest: 1 << 20, MaxBuffered: 2 << 20})
		defer s.end()
		for path, item := range map[string]string{"/v1/messages": `{"messages":[%s]}`, "/v1/cancel": `{"refs":[%s]}`, "/v1/settle": `{"settlements":[%s]}`} {
			for n, status := range map[int]int{3000: 200, 5000: 503} {
				w := s.wire()
				w.say(request("POST", path, fmt.Sprintf(item, "{}"+strings.Repeat(",{}", n-1))))
				w.answer(status)
				_ = w.Close()
				synctest.Wait()
			}
		}
	})
}

// A body has to go on coming; as long as it does it may take its time.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{ReadTimeout: 10 * time.Second})
		defer s.end()
		text := request("POST", "/v1/messages", `{"messages":[{"queue":"q","body":"`+strings.Repeat("x", 1<<20-10)+`"}]}`)
		drip := func(w *wire, bytes int, pause time.Duration) {
			go func() {
				for part := text; part != ""; part = part[min(len(part), bytes):] {
					if _, err := io.WriteString(w, part[:min(len(part), bytes)]); err != nil {
						return
					}
					time.Sleep(pause)
				}
			}()
		}
		start := time.Now()
		w := s.wire()
		drip(w, 16<<10, 2*time.Second)
		w.answer(200)
		if d := time.Since(start); d < 2*time.Minute {
			t.Errorf("it took %v, which is not slow", d)
		}
		_ = w.Close()

		start = time.Now()
		w = s.wire()
		drip(w, 1<<10, time.Second)
		w.answer(408)
		w.ended()
		// Once for reading it, and once for what is still to come.
		if d := time.Since(start); d < 10*time.Second || d > 30*time.Second {
			t.Errorf("it was cut after %v", d)
		}
		_ = w.Close()
		time.Sleep(time.Minute) // the drips end
	})
}

// Also where nobody looks at a body it must not hold a connection for ever.
func TestBodiesThatNeverCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{ReadTimeout: 10 * time.Second})
		defer s.end()
		for start, status := range map[string]int{
			"GET /v1/info": 200, "DELETE /v1/queues/q/keys/k": 404, "GET /nowhere": 404, "POST /v1/lease": 408, "PUT /v1/info": 405,
			"POST /v1/queues/q/messages": 415, "GET /healthz": 200,
		} {
			for _, length := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
				w := s.wire()
				head := start + " HTTP/1.1\r\nHost: localhost\r\n" + length + "\r\n"
				if status == 408 {
					head += "Content-Type: application/json\r\n"
				}
				began := time.Now()
				w.say(head + "\r\n")
				w.answer(status)
				w.ended()
				if d := time.Since(began); d > 30*time.Second {
					t.Errorf("%s, %s: %v", start, length, d)
				}
				_ = w.Close()
			}
		}
	})
}

func TestHeadersThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{ReadHeaderTimeout: 5 * time.Second})
		defer s.end()
		w := s.wire()
		start := time.Now()
		go func() {
			_, err := io.WriteString(w, "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n")
			for n := 0; err == nil; n++ {
				time.Sleep(time.Second)
				_, err = fmt.Fprintf(w, "X-%d: x\r\n", n)
			}
		}()
		w.ended()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("it took %v", d)
		}
		time.Sleep(time.Second) // the drip ends
	})
}

// A flood is read to a bound, and then cut off.
func TestChunksWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		w := s.wire()
		took := make(chan int, 1)
		go func() {
			n, err := io.WriteString(w, "POST /v1/queues/q/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			chunk := "10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"
			for m := 0; err == nil; n += m {
				m, err = io.WriteString(w, chunk)
			}
			took <- n
		}()
		w.answer(413)
		w.ended()
		if n := <-took; n < 8<<20 || n > 17<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

// More than was announced is another request, or none.
func TestContentLengthTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		w := s.wire()
		w.say(request("POST", "/v1/queues/q/messages", `{"key":"a"}`) + request("POST", "/v1/queues/q/messages", `{"key":"b"}`) + `{"key":"c"}` + "\r\n\r\n")
		w.answer(201)
		w.answer(201)
		w.unread(400)
		w.ended()
		if q := s.call(200, "GET", "/v1/queues/q", ""); q["ready"] != 2.0 {
			t.Errorf("%v", q)
		}
	})
}

// Half a request does nothing.
func TestContentLengthTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		text := request("POST", "/v1/queues/q/messages", `{"key":"a"}    `)
		w := s.wire()
		<-w.say(text[:len(text)-2])
		synctest.Wait()
		_ = w.Close()
		synctest.Wait()
		if q := s.call(200, "GET", "/v1/queues/q", ""); q["ready"] != 0.0 {
			t.Errorf("%v", q)
		}
	})
}

// Who asks before it sends need not send what is refused.
func TestExpectContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		const expect = " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: "
		for head, status := range map[string]int{
			"POST /v1/messages" + expect + "900000000": 413,
			"POST /v1/nowhere" + expect + "5000000":    404,
			"DELETE /v1/messages" + expect + "5000000": 405,
		} {
			w := s.wire()
			start := time.Now()
			w.say(head + "\r\n\r\n")
			w.answer(status) // and not 100
			w.ended()
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("%s: %v", head, d)
			}
		}
		w := s.wire()
		w.say("POST /v1/queues/q/messages" + expect + "2\r\n\r\n")
		if line, err := w.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = w.in.ReadString('\n')
		w.say("{}")
		w.answer(201)
		_ = w.Close()
	})
}

// Who does not ask has it read, so that the answer arrives.
func TestRefusedBodiesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxRequest: 1 << 20})
		defer s.end()
		w := s.wire()
		text := request("POST", "/v1/messages", strings.Repeat(" ", 5<<20))
		took := w.say(text)
		w.answer(413)
		if n := <-took; n != len(text) {
			t.Errorf("%d of %d bytes were read", n, len(text))
		}
		w.say(request("POST", "/v1/queues/q/messages", `{}`))
		w.answer(201)
		_ = w.Close()
	})
}
