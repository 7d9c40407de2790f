package httpengine_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// counted runs a server that counts its connections and requests, and returns a
// client of it over HTTP and one beside it.
func counted(t *testing.T) (remote, local *tarry.Client, conns, polls *atomic.Int32) {
	t.Helper()
	conns, polls = new(atomic.Int32), new(atomic.Int32)
	eng := memengine.New(nil)
	local = tarry.New(eng, nil)
	h := watched(t, server.New(local, nil))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/lease" {
			polls.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	e := open(t, s.URL)
	remote = tarry.New(e, nil)
	t.Cleanup(func() {
		_ = remote.Close()
		_ = e.Close()
		_ = local.Close()
		s.Close()
		_ = eng.Close()
	})
	return remote, local, conns, polls
}

func push(t *testing.T, c *tarry.Client, queue string) tarry.Pushed {
	t.Helper()
	p, err := c.Push(t.Context(), queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A wait is handed on to the server, and ends there: no connection is cut.
func TestWaitsThatEndCutNoConnection(t *testing.T) {
	c, _, conns, _ := counted(t)
	for range 20 {
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: 20 * time.Millisecond})
		if err != nil || len(l.Messages) != 0 {
			t.Fatalf("%+v, %v", l, err)
		}
	}
	if n := conns.Load(); n > 3 {
		t.Errorf("20 waits opened %d connections", n)
	}
}

// A worker that stops, or a caller who leaves, while messages come leaves none of them
// leased to nobody, and does not hang up on the server.
func TestWhoLeavesTakesNothingAlong(t *testing.T) {
	c, local, conns, _ := counted(t)
	for i := range 40 {
		q := fmt.Sprint("q", i)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var handled atomic.Int32
		if i%2 == 0 {
			w := tarry.NewWorker(c, nil)
			tarry.Handle(w, tarry.NewTopic[[]byte](q), func(context.Context, *tarry.Message[[]byte]) error { handled.Add(1); return nil })
			go func() { ended <- w.Run(ctx) }()
		} else {
			go func() {
				l, _ := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{q}, Max: 1, Wait: time.Minute})
				handled.Add(int32(len(l.Messages)))
				ended <- nil
			}()
		}
		time.Sleep(time.Duration(i%8) * time.Millisecond) // it waits already, or not yet
		push(t, local, q)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		giveUp := time.Now().Add(2 * time.Minute)
		for {
			info, err := local.Queue(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if info.Leased == int64(handled.Load())*int64(i%2) {
				break
			}
			if time.Now().After(giveUp) {
				t.Fatalf("round %d: %+v; %d were handled", i, info, handled.Load())
			}
			time.Sleep(time.Millisecond)
		}
	}
	if n := conns.Load(); n > 20 {
		t.Errorf("%d connections were opened", n)
	}
}

// While one queue has no room the poll for the others rests, whatever they finish.
func TestFullQueueCutsNoPolls(t *testing.T) {
	c, local, conns, polls := counted(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	full, done := make(chan struct{}), make(chan struct{}, 300)
	begun := make(chan struct{})
	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, tarry.NewTopic[[]byte]("full"), func(context.Context, *tarry.Message[[]byte]) error {
		close(begun)
		<-full
		return nil
	}, tarry.Concurrency(1))
	tarry.Handle(w, tarry.NewTopic[[]byte]("busy"), func(context.Context, *tarry.Message[[]byte]) error {
		done <- struct{}{}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	push(t, local, "full")
	<-begun
	before := polls.Load()
	const n = 300
	for range n {
		push(t, local, "busy")
		<-done
	}
	if got := conns.Load(); got > 10 {
		t.Errorf("%d connections were opened", got)
	}
	if got := polls.Load() - before; got > 2*n+10 {
		t.Errorf("%d polls for %d messages", got, n)
	}
	close(full)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What ended in a queue is told over HTTP too, to those who wait as well.
func TestWaitsTellWhatEnded(t *testing.T) {
	c, local, _, _ := counted(t)
	if _, err := local.Push(t.Context(), "q", nil, tarry.ExpireAfter(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: 50 * time.Millisecond})
	if err != nil || len(l.Told) != 1 || l.Told[0] != (tarry.Told{Queue: "q", Expired: 1}) {
		t.Errorf("%+v, %v", l, err)
	}
}

// A wait tells how long it was before the message was leased, over as many requests as
// it took.
func TestWaitTellsHowLongItWas(t *testing.T) {
	c, local, _, _ := counted(t)
	e := c.Engine().(engine.LeaseWaiter)
	for delay := 200 * time.Millisecond; ; delay *= 2 {
		if _, err := local.Push(t.Context(), "q", nil, tarry.In(delay)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := e.LeaseWait(t.Context(), engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Minute})
		took := time.Since(start)
		if err != nil || len(got.Messages) != 1 || got.Waited > took {
			t.Fatalf("%d messages after %v, of which it waited %v; %v", len(got.Messages), took, got.Waited, err)
		}
		if got.Waited >= delay/2 {
			return
		}
		if delay > 10*time.Second { // longer than any machine takes to begin to wait
			t.Fatalf("it waited %v for what was due in %v", got.Waited, delay)
		}
	}
}

// half is an engine whose purges fail midway.
type half struct{ *memengine.Engine }

func (half) Purge(context.Context, string, engine.PurgeAlso) (int64, error) {
	return 7, &engine.Error{Op: "purge", Queue: "q", Err: engine.ErrUnavailable, Hint: "no more"}
}

func TestPurgeThatFailsMidwayTellsTheCount(t *testing.T) {
	e := open(t, serve(t, half{memengine.New(nil)}))
	defer e.Close()
	if n, err := e.Purge(t.Context(), "q", 0); n != 7 || engine.Code(err) != "unavailable" {
		t.Errorf("%d, %v", n, err)
	}
}
