package server_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/server"
)

// stalling is an engine whose pushes take a while.
type stalling struct {
	*memengine.Engine
	stall    time.Duration
	coalesce int
}

func (e *stalling) Capabilities() engine.Capabilities {
	c := e.Engine.Capabilities()
	c.Coalesce, c.Lanes = e.coalesce, 4
	return c
}

func (e *stalling) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if !duration.Sleep(ctx, e.stall) {
		return nil, ctx.Err()
	}
	return e.Engine.Push(ctx, msgs)
}

// heldUp is an engine of whose messages another transaction holds each.
type heldUp struct{ *stalling }

func (e heldUp) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	out := make([]engine.PushResult, len(msgs))
	for i := range out {
		out[i].Err = engine.ErrBusy
	}
	return out, nil
}

// counted is a listener that counts what is done to its connections.
type counted struct {
	net.Listener
	reads atomic.Int32
}

type countedConn struct {
	net.Conn
	of *counted
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &countedConn{c, l}, err
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.of.reads.Add(1)
	return c.Conn.Read(p)
}

// serveStalling serves an engine whose pushes take a while, on connections that are counted.
func serveStalling(t *testing.T, stall time.Duration, coalesce int, cfg *server.Config) (*served, *counted) {
	return serveOn(t, &stalling{memengine.New(nil), stall, coalesce}, cfg)
}

func serveOn(t *testing.T, e engine.Engine, cfg *server.Config) (*served, *counted) {
	p := newPipes()
	l, c := &counted{Listener: p}, tarry.New(e, nil)
	s := serveAs(t, c, newServer(t, c, cfg), l)
	s.ln, s.dial = p, p.dial
	return s, l
}

var pushed = request("POST", "/v1/queues/q/messages", `{}`)

// A push costs one read of its connection, unless net/http is quick to watch the connection.
func TestWhatAPushDoesToItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := serveStalling(t, time.Millisecond, 100, nil)
		defer s.end()
		w := s.wire()
		defer w.Close()
		began := time.Now()
		for range 100 {
			w.say(pushed)
			w.answer(201)
			synctest.Wait()
		}
		if n, took := l.reads.Load(), time.Since(began); n > 150 || took > 200*time.Millisecond {
			t.Errorf("100 pushes of a millisecond cost %d reads and took %v", n, took)
		}
	})
}

// A push goes on when its client leaves, and the next request is watched.
func TestClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 3)
		s, _ := serveStalling(t, time.Second, 100, &server.Config{
			Answered: func(_, _ string, status int, took time.Duration) { ended <- took },
		})
		defer s.end()
		w := s.wire()
		<-w.say(pushed)
		time.Sleep(time.Millisecond)
		_ = w.Close()
		if took := <-ended; took != time.Second {
			t.Errorf("a push of a second took %v", took)
		}

		w = s.wire()
		<-w.say(pushed + request("POST", "/v1/lease", `{"queues":["none"],"wait":"20s"}`))
		w.answer(201)
		time.Sleep(5 * time.Second)
		_ = w.Close()
		<-ended
		if took := <-ended; took != 5*time.Second {
			t.Errorf("that the client of a lease left after 5 s was noticed after %v", took)
		}
	})
}

// A push to an engine that sets it no time limit ends when its client leaves.
func TestClientLeavesALongPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 1)
		s, _ := serveStalling(t, time.Hour, 0, &server.Config{
			Answered: func(_, _ string, _ int, took time.Duration) { ended <- took },
		})
		defer s.end()
		w := s.wire()
		<-w.say(pushed)
		time.Sleep(5 * time.Second)
		_ = w.Close()
		if took := <-ended; took != 5*time.Second {
			t.Errorf("that the client left after 5 s was noticed after %v", took)
		}
	})
}

// A push that another transaction holds up ends, whether or not its client has left.
func TestHeldUpPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 1)
		s, _ := serveOn(t, heldUp{&stalling{memengine.New(nil), 0, 100}}, &server.Config{
			Answered: func(_, _ string, _ int, took time.Duration) { ended <- took },
		})
		defer s.end()
		w := s.wire()
		<-w.say(pushed)
		time.Sleep(time.Second)
		_ = w.Close()
		if took := <-ended; took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Nothing is lost of a request sent ahead of the answers to two that came at once.
func TestRequestAheadOfTwoSlowAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serveStalling(t, time.Second, 100, nil)
		defer s.end()
		w := s.wire()
		defer w.Close()
		for range 20 {
			<-w.say(pushed + pushed)
			time.Sleep(500 * time.Millisecond)
			w.say(pushed)
			for range 3 {
				w.answer(201)
			}
		}
	})
}

// What a client sends ahead while its push takes long is its next request.
func TestRequestAheadOfASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serveStalling(t, time.Second, 100, &server.Config{IdleTimeout: time.Minute})
		defer s.end()
		w := s.wire()
		for _, after := range []time.Duration{0, 10 * time.Millisecond, 500 * time.Millisecond, 990 * time.Millisecond, 2 * time.Second} {
			<-w.say(pushed)
			time.Sleep(after)
			w.say(pushed)
			w.answer(201)
			w.answer(201)
		}
		began := time.Now()
		w.ended()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it was closed after %v of rest", took)
		}
		_ = w.Close()
	})
}
