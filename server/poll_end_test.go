package server_test

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

// A wait that has a name is ended by it, and answered.
func TestPollIsEndedByItsName(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	end := func() float64 { return a.call(200, "POST", "/v1/lease/end", `{"poll":"mine"}`)["count"].(float64) }
	if n := end(); n != 0 {
		t.Errorf("%v waits were ended before there was one", n)
	}
	start, answered := time.Now(), make(chan struct{})
	go func() {
		defer close(answered)
		if l := a.call(200, "POST", "/v1/lease", `{"queues":["q"],"wait":"60s","poll":"mine"}`); len(l["messages"].([]any)) != 0 {
			t.Errorf("%v", l)
		}
	}()
	for end() == 0 {
		if time.Since(start) > 50*time.Second {
			t.Fatal("the wait is not found by its name")
		}
	}
	<-answered
	if time.Since(start) > 55*time.Second {
		t.Error("the wait went on")
	}
	for _, bad := range []string{`{}`, `{"poll":""}`, `{"poll":7}`} {
		a.call(400, "POST", "/v1/lease/end", bad)
	}
}
