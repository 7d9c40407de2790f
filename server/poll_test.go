package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
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

// An answer tells how long the request had waited for what it brings.
func TestLongPollTellsHowLongItWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		for _, keep := range []string{"false", "true"} {
			s.call(201, "POST", "/v1/queues/q/messages", `{"delay":"5s"}`)
			if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"20s","keep":`+keep+`}`); err != nil || !strings.Contains(got, `"waited":"5s"`) {
				t.Errorf("%s, %v", got, err)
			}
		}
		s.call(201, "POST", "/v1/queues/q/messages", `{}`)
		if got, err := s.poll(t.Context(), `{"queues":["q"],"wait":"20s"}`); err != nil || strings.Contains(got, "waited") {
			t.Errorf("%s, %v", got, err)
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

// Waits that end just about when messages fall due lose none: each is handed to
// somebody or to nobody, and no lease is left without a holder.
func TestShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		const n = 200
		for i := range n {
			s.call(201, "POST", "/v1/queues/q/messages", fmt.Sprintf(`{"delay":"%dms"}`, 10*(i+1)))
		}
		var got atomic.Int64
		var pollers sync.WaitGroup
		for p := range 4 {
			pollers.Go(func() {
				time.Sleep(time.Duration(p) * time.Millisecond)
				for range 10 * n / 8 {
					answer, err := s.poll(t.Context(), `{"queues":["q"],"max":3,"wait":"10ms"}`)
					if err != nil || !strings.HasPrefix(answer, "200 ") {
						t.Errorf("%s, %v", answer, err)
						return
					}
					got.Add(int64(strings.Count(answer, `"lease":`)))
				}
			})
		}
		pollers.Wait()
		if q := s.call(200, "GET", "/v1/queues/q", ""); got.Load() != n || q["leased"] != float64(n) {
			t.Errorf("%d of %d messages came, %v are leased", got.Load(), n, q["leased"])
		}
	})
}

// Clients that hang up just about when messages fall due leave none leased.
func TestClientsGoneWhenMessagesFallDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		const n = 100
		s.call(200, "POST", "/v1/messages", `{"messages":[`+strings.TrimSuffix(strings.Repeat(`{"queue":"q","delay":"100ms"},`, n), ",")+`]}`)
		var polls sync.WaitGroup
		var got atomic.Int64
		for i := range n {
			w := s.wire()
			w.say(request("POST", "/v1/lease", `{"queues":["q"],"wait":"20s"}`))
			polls.Go(func() {
				time.Sleep(100*time.Millisecond + time.Duration(i-n/2)*time.Microsecond)
				_ = w.SetReadDeadline(time.Now().Add(time.Duration(i%3) * time.Microsecond))
				b, _ := io.ReadAll(w.in)
				if bytes.HasSuffix(b, []byte("}")) {
					got.Add(int64(bytes.Count(b, []byte(`"lease":`))))
				}
				_ = w.Close()
			})
		}
		polls.Wait()
		synctest.Wait()
		q := s.call(200, "GET", "/v1/queues/q", "")
		if q["leased"] != float64(got.Load()) || q["leased"].(float64)+q["ready"].(float64) != n {
			t.Errorf("%d messages came, %v are leased, %v ready", got.Load(), q["leased"], q["ready"])
		}
		var list struct{ Messages []struct{ Attempt int } }
		if err := json.Unmarshal(s.send("GET", "/v1/queues/q/messages?state=ready&limit=1000", "").Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Messages {
			if m.Attempt != 0 {
				t.Errorf("an attempt was counted that nobody made: %d", m.Attempt)
			}
		}
		t.Log(got.Load(), "messages came")
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

// net/http answers by itself, in plain text, when it cannot read a request at all.
func TestUnreadableRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		for request, want := range map[string]int{
			"NONSENSE\r\n\r\n":                  400,
			"GET / HTTP/1.1\r\n\r\n":            400, // no Host
			"GET / HTTP/9.9\r\nHost: a\r\n\r\n": 505,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n":                   501,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nExpect: a-banana\r\n\r\n":                          417,
			"GET /v1/info HTTP/1.0\r\nHost: a\r\nExpect: a-banana\r\n\r\n":                          417,
			"POST /v1/lease HTTP/1.1\r\nHost: a\r\nExpect: a-banana\r\nContent-Length: 2\r\n\r\n{}": 417,
			"GET /v1/info HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n":    431,
		} {
			w := s.wire()
			w.say(request)
			w.unread(want)
			w.ended()
			_ = w.Close()
		}
	})
}
