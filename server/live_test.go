package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	shapes "github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/trend"
)

// stream is an answer that is read while it is written.
type stream struct {
	status int
	header http.Header
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	b     []byte
	stuck chan struct{} // writes wait until it is closed; nil: they do not
}

func (s *stream) Header() http.Header    { return s.header }
func (s *stream) WriteHeader(status int) { s.status = status }
func (s *stream) FlushError() error      { return nil }
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	stuck := s.stuck
	s.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, b...)
	return len(b), nil
}

// hold has writes wait, or go on.
func (s *stream) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.stuck = make(chan struct{})
	} else {
		close(s.stuck)
		s.stuck = nil
	}
}

// told is an event.
type told struct {
	id, name string
	data     []byte
}

// events are those that came since it was last called.
func (s *stream) events(t testing.TB) (all []told) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for block := range strings.SplitSeq(string(s.b), "\n\n") {
		var e told
		for line := range strings.SplitSeq(block, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = []byte(value)
			}
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
	s.b = nil
	return all
}

// queues are those of which was told since this was last called, as they were at last.
func (s *stream) queues(t testing.TB) map[string]shapes.LiveQueue {
	t.Helper()
	all := make(map[string]shapes.LiveQueue)
	for _, e := range s.events(t) {
		if e.name != "queues" {
			continue
		}
		var data struct{ Queues []shapes.LiveQueue }
		if err := json.Unmarshal(e.data, &data); err != nil {
			t.Fatalf("%v: %s", err, e.data)
		}
		for _, q := range data.Queues {
			all[q.Queue] = q
		}
	}
	return all
}

// counting counts what an engine is asked, and may fail.
type counting struct {
	engine.Whole
	queue, queues atomic.Int64
	down          atomic.Bool
}

func (e *counting) Queue(ctx context.Context, q string) (engine.QueueInfo, error) {
	e.queue.Add(1)
	if e.down.Load() {
		return engine.QueueInfo{}, engine.ErrUnavailable
	}
	return e.Whole.Queue(ctx, q)
}

func (e *counting) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	e.queues.Add(1)
	return e.Whole.Queues(ctx, after, limit)
}

// liveServer is a server that is watched.
type liveServer struct {
	testing.TB
	*server.Server
	*tarry.Client
	engine *counting
}

// live runs f in a bubble with a server.
func live(t *testing.T, cfg server.Config, f func(l *liveServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &counting{Whole: memengine.New(nil)}
		trends := trend.New(nil)
		c := tarry.New(e, &tarry.Config{Meter: trends.Meter()})
		defer e.Close()
		defer c.Close()
		cfg.Trends = trends
		f(&liveServer{TB: t, Server: server.New(c, &cfg), Client: c, engine: e})
	})
}

// watch begins to watch.
func (l *liveServer) watch(query string, headers ...string) *stream {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/live?"+query, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	s := &stream{header: make(http.Header), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		l.ServeHTTP(s, r)
	}()
	return s
}

func (s *stream) leave() {
	s.cancel()
	<-s.done
}

func (l *liveServer) push(queue string, opts ...tarry.PushOption) {
	l.Helper()
	if _, err := l.PushDraft(l.Context(), tarry.NewDraft(queue, nil, opts...)); err != nil {
		l.Fatal(err)
	}
}

func TestLiveTellsWhatChanges(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		l.push("a", tarry.Key("k"), tarry.In(time.Hour))
		l.push("b")
		s := l.watch("queues=a&overview=all")
		time.Sleep(10 * time.Millisecond)
		first := s.queues(t)
		if len(first) != 2 || first["a"].Scheduled != 1 || first["b"].Ready != 1 || first["a"].Trend == nil || s.header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v: %+v", s.header, first)
		}

		time.Sleep(10 * time.Second)
		s.events(t) // what happened ages a little
		l.push("a", tarry.In(time.Minute))
		time.Sleep(300 * time.Millisecond)
		got := s.queues(t)
		if len(got) != 1 || got["a"].Scheduled != 2 || got["a"].Changes <= first["a"].Changes {
			t.Errorf("after a push to a: %+v", got)
		}
		l.push("b")
		time.Sleep(1100 * time.Millisecond)
		if got := s.queues(t); got["b"].Ready != 2 {
			t.Errorf("after a push to b: %+v", got)
		}
		time.Sleep(5 * time.Second)
		if got := s.queues(t); got["b"].Trend == nil || got["b"].Trend.Pushed != 2 {
			t.Errorf("5 s after a push to b: %+v", got)
		}

		// What shows in no count.
		changes := got["a"].Changes
		r := httptest.NewRequest("PATCH", "http://localhost/v1/queues/a/keys/k", strings.NewReader(`{"delay":"2h"}`))
		r.Header.Set("Content-Type", "application/json")
		l.ServeHTTP(httptest.NewRecorder(), r)
		time.Sleep(300 * time.Millisecond)
		if got := s.queues(t); got["a"].Changes <= changes {
			t.Errorf("after a reschedule: %+v", got)
		}

		if _, err := l.Purge(t.Context(), "b", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		if got := s.queues(t); !got["b"].Gone {
			t.Errorf("after a purge: %+v", got)
		}
		s.leave()
	})
}

// The engine is asked as often by 200 viewers as by one, and not at all by none.
func TestLiveAsksOnceForAll(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		for i := range 50 {
			l.push(fmt.Sprint("q", i))
		}
		count := func(viewers int) (queue, queues int64) {
			queue, queues = l.engine.queue.Load(), l.engine.queues.Load()
			var all []*stream
			for i := range viewers {
				all = append(all, l.watch([]string{"queues=q1,q2&overview=changes", "overview=all", "queues=q2"}[i%3]))
			}
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				l.push("q1")
			}
			for i, s := range all {
				if got := s.queues(t); i%3 == 0 && got["q1"].Ready < 90 {
					t.Errorf("viewer %d was told %+v", i, got["q1"])
				}
				s.cancel()
			}
			for _, s := range all {
				<-s.done
			}
			return l.engine.queue.Load() - queue, l.engine.queues.Load() - queues
		}
		one, oneAll := count(1)
		if one < 2*40 || one > 2*41 || oneAll < 10 || oneAll > 11 {
			t.Errorf("for one viewer: %d times for two queues, %d times for all, in 10 s", one, oneAll)
		}
		many, manyAll := count(200)
		if many > one+2 || manyAll > oneAll+1 {
			t.Errorf("for 200 viewers: %d and %d times, for one %d and %d", many, manyAll, one, oneAll)
		}
		time.Sleep(time.Minute)
		before := l.engine.queue.Load() + l.engine.queues.Load()
		time.Sleep(time.Minute)
		if n := l.engine.queue.Load() + l.engine.queues.Load() - before; n != 0 {
			t.Errorf("nobody watches, and the engine is asked %d times", n)
		}
	})
}

// Who does not read holds up nobody, and is told of the newest when he reads again.
func TestLiveOfSlowViewers(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		slow, quick := l.watch("queues=q"), l.watch("queues=q")
		time.Sleep(300 * time.Millisecond)
		slow.events(t)
		slow.hold(true)
		for range 100 {
			l.push("q")
			time.Sleep(300 * time.Millisecond)
		}
		if got := quick.queues(t); got["q"].Ready != 100 {
			t.Errorf("the quick one was told %+v", got)
		}
		slow.hold(false)
		if events := slow.events(t); len(events) > 3 {
			t.Errorf("%d events were kept for the slow one", len(events))
		}
		l.push("q")
		time.Sleep(300 * time.Millisecond)
		if got := slow.queues(t); got["q"].Ready != 101 {
			t.Errorf("the slow one was told %+v", got)
		}
		slow.leave()
		quick.leave()
	})
}

func TestLiveGoesOn(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		for i := range 1200 {
			l.push(fmt.Sprint("q", i))
		}
		s := l.watch("overview=all")
		time.Sleep(100 * time.Millisecond)
		var id string
		n := 0
		for _, e := range s.events(t) {
			if e.name == "queues" {
				id = e.id
				n++
			}
			if len(e.data) > 500_000 {
				t.Errorf("an event of %d bytes", len(e.data))
			}
		}
		if n != 3 {
			t.Errorf("all came in %d events, want 3", n)
		}
		s.leave()
		l.push("q7")
		time.Sleep(time.Second)

		s = l.watch("", "Last-Event-ID", id)
		time.Sleep(2 * time.Second)
		events := s.events(t)
		if string(events[0].data[:len(`{"now"`)]) != `{"now"` || !strings.Contains(string(events[0].data), `"resumed":true`) {
			t.Errorf("it began with %s", events[0].data)
		}
		found := 0
		for _, e := range events {
			if e.name == "queues" {
				found += strings.Count(string(e.data), `"queue":`)
				if !strings.Contains(string(e.data), `"queue":"q7"`) {
					t.Errorf("told was %s", e.data)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d queues were told of, want the one that changed", found)
		}
		s.leave()
		time.Sleep(2 * time.Minute)
		for _, last := range []string{id, "x-1", "nonsense"} {
			s = l.watch("", "Last-Event-ID", last)
			time.Sleep(2 * time.Second)
			if events := s.events(t); len(events) != 2 || !strings.Contains(string(events[0].data), `"resumed":false`) || events[1].name != "totals" {
				t.Errorf("behind %s: %s", last, events)
			}
			s.leave()
		}
	})
}

// Each event tells how many watch, so that pages read the less often the more they are.
func TestLiveTellsHowManyWatch(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		a := l.watch("queues=q")
		time.Sleep(300 * time.Millisecond)
		if events := a.events(t); len(events) != 2 || !strings.Contains(string(events[0].data), `"viewers":1`) || !strings.HasSuffix(string(events[1].data), `],"viewers":1}`) {
			t.Errorf("one was told %s", events)
		}
		b := l.watch("overview=changes")
		l.push("q")
		time.Sleep(300 * time.Millisecond)
		events := a.events(t)
		if len(events) == 0 {
			t.Error("nothing was told of the push")
		}
		// A reading in the millisecond of the push may see a part of it: the rest is told of with the next.
		for _, e := range events {
			if !strings.HasSuffix(string(e.data), `],"viewers":2}`) {
				t.Errorf("beside another one was told %s", e)
			}
		}
		a.leave()
		b.leave()
	})
}

func TestLiveWithoutNews(t *testing.T) {
	live(t, server.Config{}, func(l *liveServer) {
		s := l.watch("queues=q")
		time.Sleep(300 * time.Millisecond)
		s.events(t)
		time.Sleep(time.Minute)
		s.mu.Lock()
		if beats := strings.Count(string(s.b), ":\n\n"); beats < 3 || strings.Contains(string(s.b), "event") {
			t.Errorf("in a minute came %q", s.b)
		}
		s.mu.Unlock()
		l.engine.down.Store(true)
		time.Sleep(time.Second)
		l.engine.down.Store(false)
		time.Sleep(time.Second)
		events := s.events(t)
		if len(events) != 2 || string(events[0].data) != `{"up":false}` || string(events[1].data) != `{"up":true}` {
			t.Errorf("when the store was down came %s", events)
		}
		s.leave()
	})
}

func TestLiveHasItsLimits(t *testing.T) {
	live(t, server.Config{MaxViewers: 2}, func(l *liveServer) {
		a, b := l.watch("queues=q"), l.watch("")
		synctest.Wait()
		for query, want := range map[string]string{
			"":                       "503 as many watch as may",
			"overview=some":          "400 overview: must be none, changes or all, not \"some\"",
			"overview=none":          "400 overview: is none, and no queues are named: there is nothing to tell",
			"queues=a,,b":            `400 queues: "" is not the name of a queue`,
			"queues=-a":              `400 queues: "-a" is not the name of a queue`,
			"queue=a":                "400 queue: no such parameter",
			"queues=" + names(33, 0): "400 queues: more than 32",
		} {
			s := l.watch(query)
			<-s.done
			var answer struct{ Error struct{ Message string } }
			if err := json.Unmarshal(s.b, &answer); err != nil || fmt.Sprint(s.status, " ", answer.Error.Message) != want {
				t.Errorf("%s: %d %s, want %s", query, s.status, s.b, want)
			}
		}
		a.leave()
		b.leave()
	})
	live(t, server.Config{}, func(l *liveServer) {
		var all []*stream
		for i := range 8 {
			all = append(all, l.watch("queues="+names(32, 32*i)))
		}
		synctest.Wait()
		s := l.watch("queues=one-more")
		<-s.done
		if s.status != 503 {
			t.Errorf("%d %s", s.status, s.b)
		}
		for _, s := range append(all, l.watch("queues=q3")) {
			s.leave()
		}
	})
}

// names are so many names of queues.
func names(n, from int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("q", from+i)
	}
	return strings.Join(all, ",")
}

// Who may see some queues is told of these, until his token is revoked.
func TestLiveOfATokenWithSomeQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuardedLive(t)
		guard, err := access.NewGuard(g.file, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := tarry.New(memengine.New(nil), nil)
		defer c.Close()
		l := &liveServer{TB: t, Server: server.New(c, &server.Config{Guard: guard}), Client: c}
		l.push("mine.a")
		l.push("theirs")
		auth := []string{"Authorization", "Bearer " + g.secret}
		if s := l.watch("queues=mine.a,theirs", auth...); true {
			<-s.done
			if s.status != 403 {
				t.Errorf("%d %s", s.status, s.b)
			}
		}
		s := l.watch("overview=all", auth...)
		time.Sleep(2 * time.Second)
		for _, e := range s.events(t) {
			if e.name == "totals" || strings.Contains(string(e.data), "theirs") {
				t.Errorf("%s %s", e.name, e.data)
			}
		}
		l.push("mine.b")
		l.push("theirs")
		time.Sleep(2 * time.Second)
		if got := s.queues(t); len(got) != 1 || got["mine.b"].Ready != 1 {
			t.Errorf("%+v", got)
		}
		if _, err := g.file.Revoke("reader"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // though nothing happens, and nobody asks
		synctest.Wait()
		select {
		case <-s.done:
		default:
			t.Fatal("the token still watches 3 s after it was revoked")
		}
		if events := s.events(t); len(events) != 1 || events[0].name != "end" || !strings.Contains(string(events[0].data), "revoked") {
			t.Errorf("%s", events)
		}
	})
}

// Who watches a queue by its name is told of it no more once the token may not read it,
// though it is good for others.
func TestLiveEndsWithTheRight(t *testing.T) {
	g := newGuardedLive(t)
	synctest.Test(t, func(t *testing.T) {
		guard, err := access.NewGuard(g.file, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := tarry.New(memengine.New(nil), nil)
		defer c.Close()
		l := &liveServer{TB: t, Server: server.New(c, &server.Config{Guard: guard}), Client: c}
		auth := []string{"Authorization", "Bearer " + g.secret}
		named, overview := l.watch("queues=mine.a", auth...), l.watch("overview=all", auth...)
		time.Sleep(2 * time.Second)
		data, err := os.ReadFile(string(g.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(string(g.file), []byte(strings.Replace(string(data), `"mine.*"`, `"mine.b"`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		named.events(t)
		overview.events(t)
		for _, q := range []string{"mine.a", "mine.b"} {
			l.push(q)
		}
		time.Sleep(3 * time.Second)
		if got := named.queues(t); len(got) > 0 {
			t.Errorf("by its name it is told of %v", got)
		}
		select {
		case <-named.done:
		default:
			t.Error("who watches what it may not read is still there")
		}
		if got := overview.queues(t); len(got) != 1 || got["mine.b"].Ready != 1 {
			t.Errorf("of all queues it is told of %v", got)
		}
		if _, err := g.file.Revoke("reader"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		<-overview.done
	})
}

// guardedLive is a file with a token that may read some queues.
type guardedLive struct {
	file   access.File
	secret string
}

func newGuardedLive(t *testing.T) guardedLive {
	t.Helper()
	file := access.File(filepath.Join(t.TempDir(), "tokens"))
	_, secret, err := file.Create(access.Token{Name: "reader", Scopes: access.Read, Queues: []string{"mine.*"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return guardedLive{file, secret}
}

// Over a real connection events come as they are written, and the server's end ends them.
func TestLiveEndsWithTheServer(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.New(c, nil).Serve(ctx, ln) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/v1/live?queues=q")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	var got []string
	for lines.Scan() {
		if got = append(got, lines.Text()); strings.HasPrefix(lines.Text(), `data: {"queues":[{"queue":"q"`) {
			stop()
		}
	}
	if n := len(got); lines.Err() != nil || n < 3 || got[n-2] != `data: {"reason":"the server stops"}` {
		t.Errorf("%q, %v", got, lines.Err())
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
