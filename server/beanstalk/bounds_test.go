package beanstalk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

func TestConnectionsAreBounded(t *testing.T) {
	f := serve(t, nil, func(s *Server) { s.limits.connections = 2 })
	a, b := f.dial(t), f.dial(t)
	a.wants("use a", "USING")
	b.wants("use a", "USING")
	if got := f.dial(t).line(); got != "EOF" {
		t.Errorf("one too many gets %q", got)
	}
	a.wants("quit", "EOF")
	for end := time.Now().Add(time.Minute); f.Counts().Connections > 1 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	f.dial(t).wants("use b", "USING")
	if n := f.Counts().Refused; n != 1 {
		t.Errorf("%d are refused", n)
	}
}

// TestMemoryOfARest: who rests in a small job holds none of the memory for big ones.
func TestMemoryOfARest(t *testing.T) {
	f := serve(t, nil)
	c := f.dial(t)
	c.put(0, 0, 60, 5000)
	c.send("put 0 0 60 5000\r\n" + strings.Repeat("x", 5000) + "\r\nput 0 0 60 1020\r\n" + strings.Repeat("y", 900))
	if got := c.answer(); !strings.HasPrefix(got, "INSERTED") {
		t.Error(got)
	}
	for end := time.Now().Add(20 * time.Second); f.memory.used.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes stay held", f.memory.used.Load())
		}
	}
	c.send(strings.Repeat("y", 120) + "\r\n")
	if got := c.answer(); !strings.HasPrefix(got, "INSERTED") {
		t.Error(got)
	}
}

// holding waits until some memory for buffers is held, or none.
func (f *front) holding(t *testing.T, some bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); f.memory.used.Load() > 0 != some; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held", f.memory.used.Load())
		}
	}
}

// TestLongList: a list needs no memory of its length.
func TestLongList(t *testing.T) {
	f := serve(t, nil, func(s *Server) { s.memory.most = 2 * bigInput })
	c, other := f.dial(t), f.dial(t)
	const tubes = 3000
	for i := range tubes {
		c.wants(fmt.Sprintf("watch %s%d", strings.Repeat("x", 190), i), "WATCHING")
	}
	for range 2 {
		for command, of := range map[string]*client{"list-tubes": other, "list-tubes-watched": c} {
			want := fmt.Sprintf("OK %d", 4+len("- default\n")+tubes*len("- \n")+tubes*190+10890)
			if got := of.do(command); got != want {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
	}
	f.holding(t, false)
	f.memory.most = tubes
	other.wants("list-tubes", "OUT_OF_MEMORY")
}

// TestMemoryIsBounded: without room for its body a job is refused, small ones are not, and the
// room comes back.
func TestMemoryIsBounded(t *testing.T) {
	f := serve(t, nil, func(s *Server) { s.memory.most = bigInput })
	hog, c := f.dial(t), f.dial(t)
	hog.send("put 0 0 60 20000\r\n" + strings.Repeat("x", 10_000))
	f.holding(t, true)
	c.send("put 0 0 60 5000\r\n" + strings.Repeat("x", 5000) + "\r\n")
	if got := c.answer(); got != "OUT_OF_MEMORY" {
		t.Error(got)
	}
	c.put(0, 0, 60, 100)
	hog.send(strings.Repeat("x", 10_000) + "\r\n")
	if got := hog.answer(); !strings.HasPrefix(got, "INSERTED") {
		t.Error(got)
	}
	hog.wants("use a", "USING a")
	f.holding(t, false)
	c.put(0, 0, 60, 5000)
	// A job that cannot be sent is given back, as if it had not been reserved.
	f.holding(t, false)
	hog.send("put 0 0 60 20000\r\n" + strings.Repeat("x", 10_000))
	f.holding(t, true)
	c.wants("reserve", "RESERVED 1 100")
	c.wants("reserve", "EOF")
	_, _ = hog.Close(), c.Close()
	f.holding(t, false)
	for id, want := range map[tarry.ID]uint32{1: 1, 2: 0} {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			m, err := f.c.Get(t.Context(), tarry.ByID(id).Of("default"))
			if err == nil && m.State == tarry.Ready && m.Attempt == want {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s %s, attempt %d, want %d; %v", id, m.State, m.Attempt, want, err)
			}
		}
	}
}

// TestSlowClients: one that does not send its job is cut, and so is one that does not read; what
// it did not read is given back uncounted. Clients that just rest are not cut.
func TestSlowClients(t *testing.T) {
	const patience = time.Second
	f := serve(t, &Config{MaxJob: 1 << 20}, func(s *Server) { s.limits.read, s.limits.write = patience, patience })
	rests, types := f.dial(t), f.dial(t)
	rests.wants("use a", "USING a")
	types.send("put 0 0 60 5\r\nab")
	slow := f.dial(t)
	slow.send("put 0 0 60 50000\r\n" + strings.Repeat("x", 20_000))
	if got := slow.line(); got != "EOF" {
		t.Error(got)
	}
	const jobs = 40
	for range jobs { // not by rests, which a busy machine may let send too slowly
		if _, err := f.c.Push(t.Context(), "a", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	deaf := f.dial(t)
	_ = deaf.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	deaf.send("use a\r\nwatch a\r\nignore default\r\n" + strings.Repeat("reserve-with-timeout 0\r\n", jobs))
	for end := time.Now().Add(time.Minute); f.counts.allConns.Load() < 4 || f.Counts().Connections > 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not cut")
		}
	}
	written := 0
	for m, err := range f.c.List(t.Context(), "a", engine.Ready) {
		if err != nil {
			t.Fatal(err)
		}
		written += int(m.Attempt)
	}
	reserved := int(f.Counts().Commands["reserve-with-timeout"])
	if q, err := f.c.Queue(t.Context(), "a"); err != nil || q.Ready != jobs || written == 0 || written >= reserved || reserved == jobs {
		t.Errorf("%+v, %v; of %d reserved %d were written to it", q, err, reserved, written)
	}
	types.send("cde\r\n")
	if got := types.answer(); !strings.HasPrefix(got, "INSERTED") {
		t.Error(got)
	}
	rests.wants("use b", "USING b")
}

// TestShutdown: waits end, held jobs are ready at once, a command under way is finished.
func TestShutdown(t *testing.T) {
	eng := memengine.New(nil)
	c := tarry.New(eng, nil)
	s, err := New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{Server: s, c: c}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var ats []string
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ats = append(ats, ln.Addr().String())
		go func() { ended <- s.Serve(ctx, ln) }()
	}
	f.at = ats[0]
	holds, waits, other := f.dial(t), f.dial(t), f.dial(t)
	holds.put(0, 0, 60, 1)
	holds.wants("reserve", "RESERVED")
	waits.send("reserve\r\n")
	f.waiting(t, 1)
	other.send("put 0 0 60 10\r\nhalf")
	f.at = ats[1]
	f.dial(t).wants("use a", "USING a")
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, gone := range []*client{holds, waits, other} {
		if got := gone.line(); got != "EOF" {
			t.Errorf("it gets %q", got)
		}
	}
	if _, err := net.Dial("tcp", f.at); err == nil {
		t.Error("it still listens")
	}
	if q, err := c.Queue(t.Context(), "default"); err != nil || q.Ready != 1 || f.Counts().Connections != 0 {
		t.Errorf("%+v, %v, %d connections", q, err, f.Counts().Connections)
	}
	s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	_ = eng.Close()
}

// TestRequestsOfBrowsers: a web page cannot send commands.
func TestRequestsOfBrowsers(t *testing.T) {
	f := serve(t, nil)
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	for _, head := range []string{hello + "\r\n", hello + strings.Repeat("x", 300) + "\r\n", "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST /" + strings.Repeat("x", 300) + " HTTP/1.1\r\nhost: localhost\r\n\r\n", "POST /" + strings.Repeat("x", 300) + " HTTP/1.1\r\nHost: " + strings.Repeat("x", 250) + "\r\n\r\n"} {
		c := f.dial(t)
		c.send(head + "put 0 0 60 1\r\nx\r\n")
		for got := c.line(); got != "EOF"; got = c.line() {
			if got != "BAD_FORMAT" {
				t.Errorf("%.20q: %s", head, got)
			}
		}
	}
	if q, err := f.c.Queue(t.Context(), "default"); err != nil || q.Ready != 0 {
		t.Errorf("%+v, %v", q, err)
	}
}

// TestPipelinedPuts: what lies in the input together is pushed together, and answered in order.
func TestPipelinedPuts(t *testing.T) {
	f := serve(t, &Config{MaxJob: 1000})
	c := f.dial(t)
	var all strings.Builder
	want := []string{}
	id := 0
	for i := range 2000 {
		switch {
		case i%100 == 7:
			all.WriteString("put 0 0 60 1001\r\n" + strings.Repeat("y", 1001) + "\r\n")
			want = append(want, "JOB_TOO_BIG")
		case i%100 == 9:
			all.WriteString("put 0 0 60 3\r\nabcXYput 0 0 60\r\n")
			want = append(want, "EXPECTED_CRLF", "BAD_FORMAT")
		case i%100 == 11:
			fmt.Fprintf(&all, "use t%d\r\n", i)
			want = append(want, fmt.Sprintf("USING t%d", i))
		case i%100 == 13:
			all.WriteString("watch default\r\n")
			want = append(want, "WATCHING 1")
		default:
			id++
			fmt.Fprintf(&all, "put %d %d 60 %d\r\n%s\r\n", i, i%2, i%1000, strings.Repeat("x", i%1000))
			want = append(want, fmt.Sprintf("INSERTED %d", id))
		}
	}
	go c.send(all.String())
	for i, w := range want {
		if got := c.line(); got != w {
			t.Fatalf("answer %d is %q, want %q", i, got, w)
		}
	}
	for _, at := range []string{"", "t111", "t1911"} {
		queue := at
		if queue == "" {
			queue = "default"
		}
		q, err := f.c.Queue(t.Context(), queue)
		if n := q.Ready + q.Scheduled; err != nil || n == 0 || q.Scheduled == 0 {
			t.Errorf("%s: %+v, %v", queue, q, err)
		}
	}
}

func TestEnginesThatCannot(t *testing.T) {
	eng := memengine.New(nil)
	defer eng.Close()
	c := tarry.New(lesser{eng}, nil)
	defer c.Close()
	_, err := New(c, nil)
	if !errors.Is(err, tarry.ErrUnsupported) || !strings.Contains(err.Error(), "the engine mem has no peek; mem, disk, redis, postgres and mysql have") {
		t.Error(err)
	}
}

// lesser is an engine that cannot peek.
type lesser struct{ *memengine.Engine }

func (e lesser) Capabilities() engine.Capabilities {
	caps := e.Engine.Capabilities()
	caps.Peek = false
	return caps
}
