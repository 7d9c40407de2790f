package beanstalk

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// waiting waits until so many connections wait.
func (f *front) waiting(t testing.TB, n int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); f.Counts().Waiting != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections wait, want %d", f.Counts().Waiting, n)
		}
	}
}

// TestCommandsBehindAWait: what comes while a connection waits is carried out afterwards, in
// order, however it comes.
func TestCommandsBehindAWait(t *testing.T) {
	f := serve(t, nil)
	for _, pieces := range [][]string{
		{"reserve\r\n"},
		{"reserve\r\nuse a\r\n"},
		{"reserve\r\n", "use a\r\n"},
		{"reserve\r\n", "us", "e a", "\r\nuse b\r\nuse"},
		{"reserve\r\nu", "se a\r\nreserve-with-timeout 0\r\n"},
	} {
		c, p := f.dial(t), f.dial(t)
		for i, text := range pieces {
			c.send(text)
			if i == 0 {
				f.waiting(t, 1)
			}
		}
		id := p.put(0, 0, 60, 1)
		if got := c.answer(); got != "RESERVED "+id+" 1" {
			t.Errorf("%q: %q", pieces, got)
		}
		rest := ""
		for _, text := range pieces {
			rest += text
		}
		switch rest {
		case "reserve\r\nuse a\r\nuse b\r\nuse":
			if got := c.line() + c.line(); got != "USING aUSING b" {
				t.Errorf("%q: %q", pieces, got)
			}
			c.send(" c\r\n")
			if got := c.line(); got != "USING c" {
				t.Errorf("%q: %q", pieces, got)
			}
		case "reserve\r\nuse a\r\n":
			if got := c.line(); got != "USING a" {
				t.Errorf("%q: %q", pieces, got)
			}
		case "reserve\r\nuse a\r\nreserve-with-timeout 0\r\n":
			if got := c.line() + c.line(); got != "USING aTIMED_OUT" {
				t.Errorf("%q: %q", pieces, got)
			}
		}
		c.wants("delete "+id, "DELETED")
		_ = c.Close()
		_ = p.Close()
	}
}

// TestHalfClosedWhileWaiting: the wait ends, and what was sent before is answered.
func TestHalfClosedWhileWaiting(t *testing.T) {
	f := serve(t, nil)
	for text, want := range map[string]string{"": "TIMED_OUT EOF", "use a\r\n": "TIMED_OUT USING a EOF", "reserve\r\n": "TIMED_OUT TIMED_OUT EOF"} {
		c := f.dial(t)
		c.send("reserve\r\n")
		f.waiting(t, 1)
		c.send(text)
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		got := c.line()
		for got[max(0, len(got)-3):] != "EOF" {
			got += " " + c.line()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// A connection that breaks while it waits takes no job.
	c := f.dial(t)
	c.send("reserve\r\n")
	f.waiting(t, 1)
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
	f.waiting(t, 0)
	p := f.dial(t)
	id := p.put(0, 0, 60, 1)
	p.wants("reserve-with-timeout 0", "RESERVED "+id)
}

// TestWaitWithoutASocket: where the system does not tell of a hang-up, a waiting connection reads
// on, over several waits, and what it has read is not lost.
func TestWaitWithoutASocket(t *testing.T) {
	bubble(t, func(t *testing.T, f *front, _ func() *client) {
		ours, theirs := net.Pipe()
		c := newConn(&listener{s: f.Server, ctx: t.Context(), open: t.Context()}, ours)
		waits := func(d time.Duration, meanwhile func()) bool {
			return c.await(func(ctx context.Context) {
				time.Sleep(d)
				synctest.Wait()
				meanwhile()
				synctest.Wait()
			})
		}
		for _, d := range []time.Duration{0, watchAfter - 1, watchAfter, time.Hour} {
			if waits(d, func() {}) {
				t.Fatalf("it has hung up within %s", d)
			}
		}
		if waits(time.Second, func() { fmt.Fprint(theirs, "use a") }) {
			t.Error("it has hung up")
		}
		if got := string(c.in.take(c.in.buffered())); got != "use a" {
			t.Errorf("%q has come", got)
		}
		for range 2 {
			if !c.await(func(ctx context.Context) {
				theirs.Close()
				<-ctx.Done()
			}) {
				t.Error("it has not hung up")
			}
		}
	})
}

// TestMuchBehindAWait: a client that sent much more is seen to go, and does not hold up the end of
// the server. That holds also where there is no memory for big buffers.
func TestMuchBehindAWait(t *testing.T) {
	for most, name := range map[int64]string{maxBuffered: "room", 1: "no room"} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil, func(s *Server) { s.memory.most = most })
			goes, stays := f.dial(t), f.dial(t)
			for _, c := range []*client{goes, stays} {
				go c.send("reserve\r\n" + strings.Repeat("list-tube-used\r\n", 2<<10))
			}
			f.waiting(t, 2)
			_ = goes.Close()
			f.waiting(t, 1)
			stopped := time.Now()
			f.Close()
			if took := time.Since(stopped); took > 10*time.Second {
				t.Errorf("it takes %v to stop", took)
			}
		})
	}
}

// TestWatchBetweenWaits: a wait is for what is watched by then.
func TestWatchBetweenWaits(t *testing.T) {
	f := serve(t, nil)
	c, p := f.dial(t), f.dial(t)
	p.wants("use a", "USING a")
	for _, s := range []struct{ command, want string }{{"watch b", "WATCHING 2"}, {"watch a", "WATCHING 3"}, {"ignore b", "WATCHING 2"}} {
		c.wants("reserve-with-timeout 10ms", "TIMED_OUT")
		c.wants(s.command, s.want)
	}
	c.send("reserve\r\n")
	f.waiting(t, 1)
	id := p.put(0, 0, 60, 1)
	if got := c.answer(); got != "RESERVED "+id+" 1" {
		t.Error(got)
	}
	c.wants("delete "+id, "DELETED")
	c.wants("ignore a", "WATCHING 1")
	id = p.put(0, 0, 60, 1)
	c.wants("reserve-with-timeout 10ms", "TIMED_OUT")
	p.wants("delete "+id, "DELETED")
}

// TestTubesVanish: a tube is there as long as it is referred to or holds jobs, and takes its
// counters and its pause along.
func TestTubesVanish(t *testing.T) {
	f := serve(t, nil)
	c := f.dial(t)
	c.wants("use a", "USING a")
	id := c.put(0, 0, 60, 1)
	c.wants("pause-tube a 1000", "PAUSED")
	c.wants("use b", "USING b")
	c.wants("stats-tube a", "OK")
	if got := f.tubes.known("a").jobs.Load(); got != 1 {
		t.Errorf("%d jobs were put", got)
	}
	c.wants("delete "+id, "DELETED")
	c.wants("stats-tube a", "NOT_FOUND")
	c.wants("pause-tube a 1", "NOT_FOUND")
	c.wants("use a", "USING a")
	c.wants("watch a", "WATCHING 2")
	id = c.put(0, 0, 60, 1)
	c.wants("reserve-with-timeout 0", "RESERVED "+id)
	for range 3 {
		c.wants("use c", "USING c")
		c.wants("use b", "USING b")
	}
	f.tubes.mu.Lock()
	defer f.tubes.mu.Unlock()
	if n := len(f.tubes.order); n != 3 { // default, a, b
		t.Errorf("%q are known", names(f.tubes.order))
	}
}
