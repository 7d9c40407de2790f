package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// quoted are the names of n queues, beginning with prefix.
func quoted(prefix string, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprint(prefix, i))
	}
	return "[" + strings.Join(names, ",") + "]"
}

// keep polls queues that are to be kept, and returns the id of their set; "": none.
func (a *api) keep(queues string) string {
	a.Helper()
	id, _ := a.call(200, "POST", "/v1/lease", `{"keep":true,"wait":"1ms","queues":`+queues+`}`)["set"].(string)
	return id
}

// leaseSet polls a set, and returns the status and how many messages came.
func (a *api) leaseSet(id, more string) (status, messages int) {
	a.Helper()
	w := a.send("POST", "/v1/lease", `{"set":"`+id+`","wait":"1ms","max":10`+more+`}`)
	if w.Code == http.StatusNotFound {
		if code, _ := checkError(a, w); code != "not_found" {
			a.Errorf("code %s", code)
		}
	}
	return w.Code, strings.Count(w.Body.String(), `"lease":`)
}

func inSet(t *testing.T, cfg *server.Config, f func(a *api)) {
	synctest.Test(t, func(t *testing.T) {
		c := tarry.New(memengine.New(nil), nil)
		defer c.Close()
		f(&api{TB: t, c: c, s: newServer(t, c, cfg)})
	})
}

func TestSetStandsForItsQueues(t *testing.T) {
	inSet(t, nil, func(a *api) {
		id, other := a.keep(quoted("q", 100)), a.keep(quoted("q", 100))
		if id == "" || other == "" || id == other {
			a.Fatalf("ids %q and %q", id, other)
		}
		a.call(201, "POST", "/v1/queues/q7/messages", `{}`)
		a.call(201, "POST", "/v1/queues/q8/messages", `{}`)
		a.call(201, "POST", "/v1/queues/p/messages", `{}`)
		if code, n := a.leaseSet(id, `,"room":[{"queue":"q8","max":0}]`); code != 200 || n != 1 {
			a.Errorf("status %d, %d messages", code, n)
		}
		if code, n := a.leaseSet(other, ""); code != 200 || n != 1 {
			a.Errorf("status %d, %d messages", code, n)
		}
		for _, bad := range []string{"", "x", id + "x", strings.ToLower(id)} {
			if code, _ := a.leaseSet(bad, ""); code != 404 && (bad != "" || code != 400) {
				a.Errorf("the id %q: status %d", bad, code)
			}
		}
		for _, bad := range []string{
			`{"set":"` + id + `"}`, `{"set":"` + id + `","wait":"1s","queues":["q"]}`, `{"set":"` + id + `","wait":"1s","keep":true}`, `{"keep":true,"queues":["q"]}`,
			`{"queues":["q"],"room":[{"queue":"q","max":0}]}` + "x", `{"queues":["q"],"wait":"1s","room":[{"queue":"q","max":0}]}`, `{"queues":["q"],"room":[{"max":1001}]}`,
		} {
			a.call(400, "POST", "/v1/lease", bad)
		}
		if set, kept := a.call(200, "POST", "/v1/lease", `{"queues":["q"],"wait":"1ms"}`)["set"]; kept {
			a.Errorf("the set %v was kept of a request that does not want it", set)
		}
	})
}

// A set ends when nobody has polled it for a minute, and has one poll at a time.
func TestSetLapses(t *testing.T) {
	inSet(t, nil, func(a *api) {
		id := a.keep(quoted("q", 100))
		for range 5 {
			time.Sleep(59 * time.Second)
			if code, _ := a.leaseSet(id, ""); code != 200 {
				a.Fatalf("status %d", code)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if w := a.send("POST", "/v1/lease", `{"set":"`+id+`","wait":"60s"}`); w.Code != 200 {
				a.Errorf("status %d after a minute's poll", w.Code)
			}
		}()
		synctest.Wait()
		if code, _ := a.leaseSet(id, ""); code != 404 {
			a.Errorf("status %d while it is polled", code)
		}
		<-done
		time.Sleep(61 * time.Second)
		if code, _ := a.leaseSet(id, ""); code != 404 {
			a.Errorf("status %d after a minute without polls", code)
		}
	})
}

// However many sets are made, the queues of all together are bounded: those that rest
// for longest go, and none that is polled.
func TestSetsAreBounded(t *testing.T) {
	inSet(t, &server.Config{MaxSetQueues: 1000}, func(a *api) {
		polled := a.keep(quoted("q", 100))
		poll := make(chan int, 1)
		go func() { poll <- a.send("POST", "/v1/lease", `{"set":"`+polled+`","wait":"30s"}`).Code }()
		synctest.Wait()
		var ids []string
		for i := range 500 {
			id := a.keep(quoted(fmt.Sprint("a", i, "."), 1+i%100))
			if id == "" {
				a.Fatal("a set was refused where others rest")
			}
			ids = append(ids, id)
		}
		if id := a.keep(quoted("b", 901)); id != "" {
			a.Error("901 queues were kept where there was room for 900")
		}
		if code, _ := a.leaseSet(ids[len(ids)-1], ""); code != 200 {
			a.Errorf("status %d of a set beside one that found no room all the same", code)
		}
		if id := a.keep(quoted("c", 900)); id == "" {
			a.Error("900 queues found no room where only others rest")
		}
		for _, id := range ids {
			if code, _ := a.leaseSet(id, ""); code != 404 {
				a.Fatalf("status %d of a set that had to go", code)
			}
		}
		if code := <-poll; code != 200 {
			a.Errorf("the poll of a set meanwhile: %d", code)
		}
		if code, _ := a.leaseSet(polled, ""); code != 200 {
			a.Errorf("status %d of a set that was polled", code)
		}
	})
	inSet(t, &server.Config{MaxSetQueues: -1}, func(a *api) {
		if id := a.keep(quoted("q", 100)); id != "" {
			a.Error("a set was kept where none may be")
		}
	})
}

// A set whose id nobody was told ends with its poll.
func TestSetThatNobodyKnowsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := &moody{Engine: memengine.New(nil)}
		c := tarry.New(eng, nil)
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, &server.Config{MaxSetQueues: 1000})}
		id := a.keep(quoted("q", 100))
		for _, gone := range []bool{false, true} {
			eng.broken.Store(!gone)
			for range 20 {
				ctx, leave := context.WithCancel(t.Context())
				r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/lease", strings.NewReader(`{"keep":true,"wait":"1m","queues":`+quoted("p", 100)+`}`))
				r.Header.Set("Content-Type", "application/json")
				done := make(chan int, 1)
				go func() {
					w := httptest.NewRecorder()
					a.s.ServeHTTP(w, r)
					done <- w.Code
				}()
				if gone {
					synctest.Wait()
					leave()
				}
				if code := <-done; !gone && code != 503 {
					a.Errorf("status %d", code)
				}
				leave()
			}
			eng.broken.Store(false)
			if code, _ := a.leaseSet(id, ""); code != 200 {
				a.Fatalf("status %d of a set beside those that nobody knows; their clients have gone: %t", code, gone)
			}
		}
	})
}

// moody is an engine that cannot always be asked.
type moody struct {
	*memengine.Engine
	broken atomic.Bool
}

func (m *moody) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if m.broken.Load() {
		return engine.Grant{}, engine.ErrUnavailable
	}
	return m.Engine.Lease(ctx, wants)
}
