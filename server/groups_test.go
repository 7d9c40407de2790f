package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestDeadGroups(t *testing.T) {
	a := newAPI(t)
	for i, reason := range []string{
		"dial tcp 10.0.0.7:443: timeout after 1.5s", "dial tcp 10.0.0.12:8443: timeout after 30s", "no such order 17",
		"dial tcp 192.168.1.1:1: timeout after 2m0s", "no such order 4711", "panic: boom",
		"user 0b5e3f6c-3b0e-4a54-9f5f-0c3d0a5b7a11 is unknown", "user ABCDEFAB-abcd-abcd-abcd-abcdefabcdef is unknown",
	} {
		a.call(201, "POST", "/v1/queues/q/messages", `{}`)
		leased := a.call(200, "POST", "/v1/lease", `{"queues":["q"],"worker":"w"}`)
		a.call(200, "POST", "/v1/settle", fmt.Sprintf(`{"settlements":[{"lease":%q,"do":"bury","reason":%q}]}`, field(t, leased, "messages", 0, "lease"), reason))
		a.clock.Advance(time.Duration(i) * time.Second)
	}
	w := a.send("GET", "/v1/queues/q/dead/groups", "")
	const want = `{"groups":[` +
		`{"error":"dial tcp #: timeout after #","example":"dial tcp 192.168.1.1:1: timeout after 2m0s","count":3,"first_died":"2030-03-01T12:00:00.000Z","last_died":"2030-03-01T12:00:03.000Z","ids":["4","2","1"],"failures":[{"at":"2030-03-01T12:00:03.000Z","attempt":1,"worker":"w","error":"dial tcp 192.168.1.1:1: timeout after 2m0s"}]},` +
		`{"error":"user # is unknown","example":"user ABCDEFAB-abcd-abcd-abcd-abcdefabcdef is unknown","count":2,"first_died":"2030-03-01T12:00:15.000Z","last_died":"2030-03-01T12:00:21.000Z","ids":["8","7"],"failures":[{"at":"2030-03-01T12:00:21.000Z","attempt":1,"worker":"w","error":"user ABCDEFAB-abcd-abcd-abcd-abcdefabcdef is unknown"}]},` +
		`{"error":"no such order #","example":"no such order 4711","count":2,"first_died":"2030-03-01T12:00:01.000Z","last_died":"2030-03-01T12:00:06.000Z","ids":["5","3"],"failures":[{"at":"2030-03-01T12:00:06.000Z","attempt":1,"worker":"w","error":"no such order 4711"}]},` +
		`{"error":"panic: boom","example":"panic: boom","count":1,"first_died":"2030-03-01T12:00:10.000Z","last_died":"2030-03-01T12:00:10.000Z","ids":["6"],"failures":[{"at":"2030-03-01T12:00:10.000Z","attempt":1,"worker":"w","error":"panic: boom"}]}` +
		`],"others":0,"seen":8,"more":false}`
	if w.Body.String() != want {
		t.Errorf("got  %s\nwant %s", w.Body, want)
	}
	if w := a.send("GET", "/v1/queues/nobody/dead/groups", ""); w.Body.String() != `{"groups":[],"others":0,"seen":0,"more":false}` {
		t.Errorf("of nobody: %s", w.Body)
	}
}

// looking is an engine that tells how many look at dead messages, and holds them up.
type looking struct {
	engine.Whole
	now atomic.Int64
	on  chan struct{}
}

func (e *looking) List(context.Context, engine.ListQuery) (engine.Page, error) {
	e.now.Add(1)
	<-e.on
	e.now.Add(-1)
	return engine.Page{}, nil
}

// Each look takes memory and time: few are made at a time, and the others wait.
func TestDeadGroupsForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &looking{Whole: memengine.New(nil), on: make(chan struct{})}
		c := tarry.New(e, nil)
		defer e.Close()
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, nil)}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { a.call(200, "GET", "/v1/queues/q/dead/groups", "") })
		}
		synctest.Wait()
		if n := e.now.Load(); n != 2 {
			t.Errorf("%d look at a time", n)
		}
		close(e.on)
		all.Wait()
	})
}

// Who does not read his answer has had his turn.
func TestTurnsEndBeforeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		for _, path := range []string{"/v1/queues/q/dead/groups", "/v1/trends", "/v1/queues/q/messages"} {
			var all sync.WaitGroup
			slow := make([]stream, 10)
			for i := range slow {
				slow[i].header = make(http.Header)
				slow[i].hold(true)
				all.Go(func() {
					a.s.ServeHTTP(&slow[i], httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil))
				})
			}
			synctest.Wait()
			a.call(200, "GET", path, "") // else nothing goes on in the bubble
			for i := range slow {
				slow[i].hold(false)
			}
			all.Wait()
		}
	})
}

// listed is an engine with n dead messages.
type listed struct {
	engine.Whole
	n, asked int
}

func (e *listed) List(_ context.Context, q engine.ListQuery) (p engine.Page, err error) {
	e.asked++
	at, _ := strconv.Atoi(q.After)
	for i := at; i < min(at+q.Limit, e.n); i++ {
		word := fmt.Sprintf("%c%c", 'a'+i%25, 'a'+i/25%20)
		p.Messages = append(p.Messages, engine.Info{Queue: q.Queue, ID: engine.ID(i + 1), State: engine.Dead, LastError: word})
	}
	if at+q.Limit < e.n {
		p.Next = strconv.Itoa(at + q.Limit)
	}
	return p, nil
}

// However many have died, so many are looked at, and so many errors told apart.
func TestDeadGroupsAreBounded(t *testing.T) {
	a := newAPI(t)
	lists := &listed{Whole: memengine.New(nil), n: 25_000}
	c := tarry.New(lists, nil)
	defer c.Close()
	a.s = newServer(t, c, nil)
	w := a.send("GET", "/v1/queues/q/dead/groups", "")
	var got struct {
		Groups       []struct{ Count int }
		Others, Seen int
		More         bool
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Groups) != 200 || got.Seen != 10_000 || !got.More || got.Others+200*20 != 10_000 || lists.asked != 21 {
		t.Errorf("%d groups, %d others, %d seen, more %t, %d pages", len(got.Groups), got.Others, got.Seen, got.More, lists.asked)
	}
}
