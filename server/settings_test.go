package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A rate holds back who waits, by exactly as long as it says, and tells who claims how
// long that is.
func TestRateOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		s.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"rate":0.1,"burst":1}}`)
		for range 2 {
			s.call(201, "POST", "/v1/queues/q/messages", `{}`)
		}
		s.call(201, "POST", "/v1/queues/q/messages", `{"key":"last"}`)
		for _, want := range []time.Duration{0, 10 * time.Second} {
			start := time.Now()
			got, err := s.poll(t.Context(), `{"queues":["q"],"max":10,"wait":"30s"}`)
			if err != nil || strings.Count(got, `"lease":`) != 1 || time.Since(start) != want {
				t.Errorf("%s, %v after %v; want one message after %v", got, err, time.Since(start), want)
			}
		}
		w := s.send("POST", "/v1/queues/q/keys/last/claim", "")
		if after := w.Header().Get("Retry-After"); w.Code != 429 || after != "10" {
			t.Errorf("a claim: %d, Retry-After %q: %s", w.Code, after, w.Body)
		}
		if code, _ := checkError(t, w); code != "limit" || !strings.Contains(w.Body.String(), `"until":"2000-01-01T00:00:20.000Z"`) {
			t.Error(w.Body)
		}
	})
}

// Who waits gets the next message in the moment in which a settlement frees its place, or
// in which the limit is lifted.
func TestInFlightOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t)
		defer s.end()
		s.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"in_flight":1}}`)
		for range 3 {
			s.call(201, "POST", "/v1/queues/q/messages", `{}`)
		}
		first := s.call(200, "POST", "/v1/lease", `{"queues":["q"],"max":10}`)
		if n, held := len(first["messages"].([]any)), field(t, first, "queues", 0, "held"); n != 1 || held != true {
			t.Fatalf("%d messages, held %v", n, held)
		}
		answers := make(chan string)
		for _, free := range []func(){
			func() {
				token := field(t, first, "messages", 0, "lease").(string)
				s.call(200, "POST", "/v1/settle", `{"settlements":[{"lease":"`+token+`","do":"ack"}]}`)
			},
			func() { s.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{}}`) },
		} {
			start := time.Now()
			go func() {
				got, err := s.poll(t.Context(), `{"queues":["q"],"max":10,"wait":"30s"}`)
				if err != nil {
					got = err.Error()
				}
				answers <- got
			}()
			time.Sleep(time.Second)
			free()
			if got := <-answers; strings.Count(got, `"lease":`) != 1 || time.Since(start) != time.Second {
				t.Errorf("%s after %v", got, time.Since(start))
			}
		}
	})
}
