package server_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
)

// far is a server as a worker beyond a network sees it.
type far struct {
	*httpengine.Engine
	back atomic.Int64 // leases given back
}

func (f *far) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	time.Sleep(5 * time.Millisecond)
	defer time.Sleep(5 * time.Millisecond)
	return f.Engine.LeaseWait(ctx, w)
}

func (f *far) Settle(ctx context.Context, all []engine.Settlement) ([]engine.Settled, error) {
	for _, s := range all {
		if s.Do == engine.Release {
			f.back.Add(1)
		}
	}
	return f.Engine.Settle(ctx, all)
}

// work runs a worker beyond the network, of n queues besides.
func (s *served) work(slots, n int, handle map[string]func()) (e *far, stop func()) {
	s.Helper()
	remote, err := httpengine.Open(s.Context(), &url.URL{Scheme: "http", Host: "localhost"}, &httpengine.Options{Transport: s.http.Transport})
	if err != nil {
		s.Fatal(err)
	}
	e = &far{Engine: remote}
	c := tarry.New(e, nil)
	w := tarry.NewWorker(c, &tarry.WorkerConfig{Concurrency: slots})
	for i := range n {
		handle[fmt.Sprint("idle", i)] = func() {}
	}
	for q, f := range handle {
		tarry.Handle(w, tarry.NewTopic[[]byte](q), func(context.Context, *tarry.Message[[]byte]) error { f(); return nil })
	}
	ctx, end := context.WithCancel(s.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	return e, func() {
		end()
		if err := <-ran; err != nil {
			s.Error(err)
		}
		if err := c.Close(); err != nil {
			s.Error(err)
		}
		_ = e.Close()
	}
}

func (s *served) burst(queue string, n int) {
	s.Helper()
	for ; n > 0; n -= 500 {
		drafts := make([]tarry.Draft, min(n, 500))
		for i := range drafts {
			drafts[i] = tarry.NewDraft(queue, nil)
		}
		if _, err := s.c.PushMany(s.Context(), drafts); err != nil {
			s.Fatal(err)
		}
	}
}

// When places of a queue are freed that were all taken, a worker beyond the network that
// is quick with another queue takes none of them ahead from those who can begin.
func TestRemoteWorkersLeaveWhatIsHeldToOthers(t *testing.T) {
	for _, queues := range []int{0, 100} { // so many are polled as a set
		t.Run(fmt.Sprint("and ", queues, " queues"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t)
				defer s.end()
				const places = 40
				s.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"in_flight":40}}`)
				s.burst("q", 3*places)
				taken, err := s.c.LeaseNow(t.Context(), []engine.Want{{Queue: "q", Max: places, TTR: time.Hour}})
				if err != nil || len(taken.Queues[0].Messages) != places {
					t.Fatalf("%+v, %v", taken, err)
				}
				var running [2]atomic.Int64
				slow := func(worker int) func() {
					return func() {
						running[worker].Add(1)
						time.Sleep(time.Minute)
						running[worker].Add(-1)
					}
				}
				var quick atomic.Int64
				s.burst("quick", 2000)
				busy, end := s.work(4, queues, map[string]func(){"q": slow(0), "quick": func() { time.Sleep(time.Millisecond); quick.Add(1) }})
				defer end()
				time.Sleep(5 * time.Second)
				idle, end := s.work(100, 0, map[string]func(){"q": slow(1)})
				defer end()
				time.Sleep(time.Second)
				if quick.Load() != 2000 {
					t.Fatalf("%d of the quick were handled", quick.Load())
				}
				var acks []engine.Settlement
				for _, l := range taken.Queues[0].Messages {
					acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
				}
				if _, err := s.c.Settle(t.Context(), acks); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
				if a, b := running[0].Load(), running[1].Load(); a > 4 || a+b != places {
					t.Errorf("%d and %d of %d begun at once; want 4 at most and all others", a, b, places)
				}
				time.Sleep(5 * time.Minute)
				if n := busy.back.Load() + idle.back.Load(); n > 0 {
					t.Errorf("%d were given back", n)
				}
				if q := s.call(200, "GET", "/v1/queues/q", ""); q["ready"] != 0.0 || q["leased"] != 0.0 {
					t.Errorf("left: %v", q)
				}
			})
		})
	}
}

// A request that waits is told of the queues that are held back, whether they were asked for it
// or that was known when it came, and of none that is held back no more. One with a set is
// told what is found after its last request.
func TestWaitsTellWhatIsHeld(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprint("with a set ", kept), func(t *testing.T) {
			inSet(t, nil, func(a *api) {
				request := `"queues":["p","q"]`
				if kept {
					request = `"set":"` + a.keep(`["p","q"]`) + `"`
				}
				held := func(when string, want bool) {
					a.Helper()
					got := a.send("POST", "/v1/lease", `{"wait":"1s","max":10,`+request+`}`).Body.String()
					if is := strings.Contains(got, `"queues":[{"queue":"q","held":true,"expired":0,"died":0}]`); is != want {
						a.Errorf("%s: %s", when, got)
					}
				}
				a.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"in_flight":1}}`)
				for range 4 {
					a.call(201, "POST", "/v1/queues/q/messages", `{}`)
				}
				held("one comes", true)
				others := make(chan struct{})
				go func() {
					defer close(others)
					a.send("POST", "/v1/lease", `{"wait":"5s","queues":["q"]}`)
				}()
				synctest.Wait()
				held("none comes, and others wait", !kept)
				a.call(201, "POST", "/v1/queues/p/messages", `{}`)
				held("of another queue one comes", !kept)
				<-others
				for _, s := range []string{`{}`, `{"in_flight":1}`} { // between two requests
					a.call(200, "PUT", "/v1/queues/q/settings", `{"settings":`+s+`}`)
					a.call(200, "POST", "/v1/lease", `{"queues":["q"],"wait":"1ms"}`)
				}
				held("it was found for others", true)
				a.call(200, "PUT", "/v1/queues/q/settings", `{"settings":{"in_flight":10}}`)
				held("the last comes", false)
				held("all have come", false)
			})
		})
	}
}
