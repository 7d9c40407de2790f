package server_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// However many wait for messages, there is a connection left for whoever settles.
func TestWaitingLeavesRoomForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveConfig(t, &server.Config{MaxConnections: 8})
		defer s.end()
		var waiting []*wire
		for range 8 {
			w := s.wire()
			w.say(request("POST", "/v1/lease", wait20))
			synctest.Wait()
			waiting = append(waiting, w)
		}
		waiting[7].answer(503)
		time.Sleep(time.Second)
		synctest.Wait()
		for range 2 {
			w := s.wire()
			w.say(request("POST", "/v1/settle", `{"settlements":[{"lease":"x","do":"ack"}]}`))
			w.answer(200)
			_ = w.Close()
			synctest.Wait()
		}
		for _, w := range waiting {
			_ = w.Close()
		}
	})
}

// One answer brings no more bytes of bodies than one queue would, from however many
// queues they come.
func TestLeaseOfManyQueuesIsBounded(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	body := make([]byte, 1<<20)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf(`"q%d"`, i))
		if _, err := a.c.Push(t.Context(), fmt.Sprintf("q%d", i), body); err != nil {
			t.Fatal(err)
		}
	}
	got := a.call(200, "POST", "/v1/lease", `{"queues":[`+strings.Join(names, ",")+`],"max":1000}`)
	if n := len(got["messages"].([]any)); n < 8 || n > 10 {
		t.Errorf("%d messages of 1 MiB in one answer", n)
	}
}
