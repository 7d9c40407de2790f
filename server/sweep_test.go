package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
)

// graves is a server on an engine with dead messages in the queue q.
type graves struct {
	testing.TB
	c     *tarry.Client
	s     *server.Watched
	audit *bytes.Buffer
}

func newGraves(t testing.TB, e engine.Engine) *graves {
	g := &graves{TB: t, c: tarry.New(e, nil), audit: new(bytes.Buffer)}
	t.Cleanup(func() {
		_ = g.c.Close()
		_ = e.Close()
	})
	g.s = newServer(t, g.c, &server.Config{Audit: access.NewAudit(g.audit)})
	return g
}

// bury has n messages die, the i-th of the error that reason gives it.
func (g *graves) bury(n int, prefix string, reason func(i int) string) {
	g.Helper()
	for at := 0; at < n; {
		var all []tarry.Draft
		for i := range min(n-at, 1000) {
			d := tarry.NewDraft("q", nil, tarry.Key(fmt.Sprint(prefix, at+i)))
			all = append(all, d)
		}
		if _, err := g.c.PushMany(g.Context(), all); err != nil {
			g.Fatal(err)
		}
		got, err := g.c.Lease(g.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1000})
		if err != nil {
			g.Fatal(err)
		}
		var settle []tarry.Settlement
		for i := range got.Messages {
			settle = append(settle, tarry.Settlement{Token: got.Messages[i].Token, Do: engine.Bury, Reason: reason(at + i)})
		}
		if _, err := g.c.Settle(g.Context(), settle); err != nil {
			g.Fatal(err)
		}
		at += len(settle)
	}
}

// mixed are four errors, each a quarter of all; the last of them is none.
func mixed(i int) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("dial tcp 10.0.0.%d:443: timeout", i)
	case 1:
		return fmt.Sprintf("no such order %d", i)
	case 2:
		return "panic: boom"
	}
	return ""
}

func (g *graves) holds(dead, ready int64) {
	g.Helper()
	q, err := g.c.Queue(g.Context(), "q")
	if err != nil {
		g.Fatal(err)
	}
	if q.Dead != dead || q.Ready != ready {
		g.Errorf("%d are dead and %d ready, want %d and %d", q.Dead, q.Ready, dead, ready)
	}
}

// swept is an answer, or a line of one.
type swept struct {
	Count, Skipped, Seen int64
	To                   time.Time
	Done                 bool
	Error                *struct{ Code, Message, Hint string }
}

// hooked is a writer that calls back when something is written.
type hooked struct {
	*httptest.ResponseRecorder
	wrote func()
}

func (h *hooked) Write(b []byte) (int, error) {
	n, err := h.ResponseRecorder.Write(b)
	if h.wrote != nil {
		h.wrote()
	}
	return n, err
}

// lines has an answer of lines written, and wrote, if not nil, called after each.
func (g *graves) lines(ctx context.Context, deed, body string, wrote func()) (all []swept, status int) {
	g.Helper()
	r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/queues/q/"+deed, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/plain;q=0.1, application/x-ndjson")
	w := &hooked{httptest.NewRecorder(), wrote}
	g.s.ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); w.Code == 200 && got != "application/x-ndjson" {
		g.Fatalf("the answer is %s", got)
	}
	for line := range strings.Lines(w.Body.String()) {
		var s swept
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			g.Fatalf("%v: %s", err, line)
		}
		all = append(all, s)
	}
	return all, w.Code
}

// ask returns the one answer, which is no error.
func (g *graves) ask(deed, body string) (s swept) {
	g.Helper()
	w := g.send(g.Context(), deed, body)
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 200 {
		g.Fatalf("%s %s: %d %s", deed, body, w.Code, w.Body)
	}
	return s
}

func (g *graves) send(ctx context.Context, deed, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/queues/q/"+deed, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.s.ServeHTTP(w, r)
	return w
}

// noted is the one line of the audit log since this was last called.
func (g *graves) noted() (line map[string]any) {
	g.Helper()
	if err := json.Unmarshal(g.audit.Bytes(), &line); err != nil {
		g.Fatalf("%v: %s", err, g.audit)
	}
	g.audit.Reset()
	delete(line, "time")
	return line
}

func (g *graves) notes(want string) {
	g.Helper()
	got, err := json.Marshal(g.noted())
	if err != nil || string(got) != want {
		g.Errorf("the audit log has %s\nwant %s", got, want)
	}
}

// Of ten thousand dead letters those of an error come back, and others go, by any filter.
func TestSweep(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) engine.Engine{
		"mem": func(*testing.T) engine.Engine { return memengine.New(nil) },
		"disk": func(t *testing.T) engine.Engine {
			e, err := diskengine.Open(filepath.Join(t.TempDir(), "store"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraves(t, open(t))
			g.bury(10_000, "k", mixed)
			g.holds(10_000, 0)

			const timeouts = `{"groups":["dial tcp #: timeout"]`
			dry := g.ask("redrive", timeouts+`,"dry_run":true}`)
			if dry.Count != 2500 || dry.Seen != 10_000 || dry.To.IsZero() {
				t.Errorf("a dry run: %+v", dry)
			}
			g.notes(`{"count":2500,"dry_run":true,"filter":{"groups":["dial tcp #: timeout"]},"from":"192.0.2.1","queue":"q","result":"ok","skipped":0,"what":"redrive"}`)
			g.holds(10_000, 0)
			steps, _ := g.lines(t.Context(), "redrive", timeouts+`,"dry_run":true}`, nil)
			if len(steps) != 21 || steps[0].Seen != 500 || steps[20].Count != 2500 || !steps[20].Done {
				t.Errorf("a dry run in lines: %+v", steps)
			}
			g.noted()

			steps, _ = g.lines(t.Context(), "redrive", timeouts+`}`, nil)
			for i, s := range steps {
				if last := i == len(steps)-1; s.Done != last || s.Error != nil || !last && s.Seen != int64(i+1)*500 {
					t.Errorf("line %d: %+v", i, s)
				}
			}
			if last := steps[len(steps)-1]; last.Count != 2500 || last.Skipped != 0 || len(steps) < 20 {
				t.Errorf("%d lines, the last %+v", len(steps), last)
			}
			g.notes(`{"count":2500,"filter":{"groups":["dial tcp #: timeout"]},"from":"192.0.2.1","queue":"q","result":"ok","skipped":0,"what":"redrive"}`)
			g.holds(7500, 2500)
			if again := g.ask("redrive", timeouts+`}`); again.Count != 0 || again.Seen != 7500 {
				t.Errorf("again: %+v", again)
			}

			if n := g.ask("drop", `{"groups":["","no such order #"],"limit":600}`); n.Count != 600 {
				t.Errorf("so many at most: %+v", n)
			}
			if n := g.ask("drop", `{"error":"order 99","key_prefix":"k99"}`); n.Count != 25 { // 99xx
				t.Errorf("by text: %+v", n)
			}
			g.holds(6875, 2500)
			if n := g.ask("drop", `{"to":"2001-01-01T00:00:00Z"}`); n.Count != 0 {
				t.Errorf("before anything died: %+v", n)
			}
			g.audit.Reset()
			if n := g.ask("drop", `{"from":"2001-01-01T00:00:00Z","to":"`+dry.To.Format(time.RFC3339Nano)+`"}`); n.Count != 6875 {
				t.Errorf("all that died by then: %+v", n)
			}
			g.notes(`{"count":6875,"filter":{"from":"2001-01-01T00:00:00.000Z","to":"` + dry.To.Format("2006-01-02T15:04:05.000Z") + `"},"from":"192.0.2.1","queue":"q","result":"ok","skipped":0,"what":"drop"}`)
			g.holds(0, 2500)
			if n := g.ask("drop", `{}`); n != (swept{}) {
				t.Errorf("of nothing: %+v", n)
			}
		})
	}
}

// What dies while a redrive is under way, be it anew, is left alone.
func TestSweepWhileOthersDie(t *testing.T) {
	g := newGraves(t, memengine.New(nil))
	g.bury(1200, "k", mixed)
	late := 0
	steps, _ := g.lines(t.Context(), "redrive", `{}`, func() {
		if late < 3 { // those that are ready again die again, too
			g.bury(400, fmt.Sprint("late", late, "-"), func(int) string { return "panic: boom" })
			late++
		}
	})
	if last := steps[len(steps)-1]; last.Count != 1200 || last.Seen != 1200 || !last.Done {
		t.Errorf("%+v", last)
	}
	q, err := g.c.Queue(t.Context(), "q")
	if err != nil || q.Dead+q.Ready != 2400 || q.Dead < 1200 {
		t.Errorf("%+v, %v", q, err)
	}
}

// When the client goes, the chunk under way is done whole, and told of.
func TestSweepLeft(t *testing.T) {
	e := &between{Whole: memengine.New(nil)}
	g := newGraves(t, e)
	g.bury(3000, "k", mixed)
	ctx, leave := context.WithCancel(t.Context())
	steps, _ := g.lines(ctx, "drop", `{}`, leave)
	if last := steps[len(steps)-1]; last.Count != 500 || last.Error == nil || last.Error.Code != "unavailable" {
		t.Errorf("%+v", steps)
	}
	g.notes(`{"count":500,"error":"the client has gone","filter":{},"from":"192.0.2.1","queue":"q","result":"unavailable","skipped":0,"what":"drop"}`)
	g.holds(2500, 0)

	ctx, leave = context.WithCancel(t.Context())
	e.redrive = leave // in the middle of the first chunk
	w := g.send(ctx, "redrive", `{"limit":2000,"from":"2001-01-01T00:00:00Z"}`)
	if w.Code != 503 || w.Header().Get("Tarry-Count") != "500" || !strings.Contains(w.Body.String(), "500 are done already; ask again for the rest") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	g.holds(2000, 500)
	if line := g.noted(); line["count"] != 500.0 || line["result"] != "unavailable" {
		t.Errorf("%v", line)
	}
	e.redrive = nil
	if n := g.ask("redrive", `{"from":"2001-01-01T00:00:00Z"}`); n.Count != 2000 {
		t.Errorf("the rest: %+v", n)
	}
}

// between is an engine that calls back before it redrives or cancels, and may fail then.
type between struct {
	engine.Whole
	redrive, cancel func()
	err             error
	hang            bool
}

func (e *between) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	if e.redrive != nil {
		e.redrive()
	}
	if e.hang {
		<-ctx.Done()
		return engine.Redriven{}, ctx.Err()
	}
	if e.err != nil {
		return engine.Redriven{}, e.err
	}
	return e.Whole.Redrive(ctx, queue, ids, limit)
}

func (e *between) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if e.cancel != nil {
		e.cancel()
	}
	return e.Whole.Cancel(ctx, refs)
}

// A store that does not answer holds nobody for longer than a moment.
func TestSweepLeftWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &between{Whole: memengine.New(nil), hang: true}
		g := newGraves(t, e)
		defer g.c.Close()
		g.bury(10, "k", mixed)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		start := time.Now()
		if w := g.send(ctx, "redrive", `{"error":"boom"}`); w.Code != 503 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if took := time.Since(start); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A store that fails midway is told of with what was done before.
func TestSweepFailsMidway(t *testing.T) {
	e := &between{Whole: memengine.New(nil)}
	g := newGraves(t, e)
	g.bury(1500, "k", mixed)
	calls := 0
	e.redrive = func() {
		if calls++; calls%2 == 0 {
			e.err = engine.ErrNoSpace
		}
	}
	steps, status := g.lines(t.Context(), "redrive", `{}`, nil)
	if last := steps[len(steps)-1]; status != 200 || last.Count != 500 || last.Done || last.Error == nil || last.Error.Code != "limit" || !strings.Contains(last.Error.Hint, "500 are done already") {
		t.Errorf("%d %+v", status, steps)
	}
	if line := g.noted(); line["count"] != 500.0 || line["result"] != "limit" {
		t.Errorf("%v", line)
	}
	e.err = nil
	if w := g.send(t.Context(), "redrive", `{"from":"2001-01-01T00:00:00Z"}`); w.Code != 507 || w.Header().Get("Tarry-Count") != "500" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	g.holds(500, 1000)
	if _, status := g.lines(t.Context(), "redrive", `{"groups":[]}`, nil); status != 400 {
		t.Errorf("what is wrong from the beginning is %d", status)
	}
}

// What has changed since it was chosen is left as it is, and counted.
func TestSweepStale(t *testing.T) {
	e := &between{Whole: memengine.New(nil)}
	g := newGraves(t, e)
	g.bury(20, "k", mixed)
	e.cancel = func() {
		if _, err := g.c.Redrive(t.Context(), "q", nil, 5); err != nil {
			t.Error(err)
		}
	}
	if n := g.ask("drop", `{}`); n.Count != 15 || n.Skipped != 5 || n.Seen != 20 {
		t.Errorf("%+v", n)
	}
	g.holds(0, 5)
}

// So many at a time, and no more.
func TestSweepsAreBounded(t *testing.T) {
	g := newGraves(t, memengine.New(nil))
	g.bury(10, "k", mixed)
	begun, leave := make(chan struct{}), make(chan struct{})
	done := make(chan int)
	for range 8 {
		go func() {
			once := false
			_, status := g.lines(t.Context(), "drop", `{"error":"nowhere"}`, func() {
				if !once {
					once = true
					begun <- struct{}{}
					<-leave
				}
			})
			done <- status
		}()
	}
	for range 8 {
		<-begun
	}
	if w := g.send(t.Context(), "drop", `{}`); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the ninth: %d %s", w.Code, w.Body)
	}
	close(leave)
	for range 8 {
		if status := <-done; status != 200 {
			t.Errorf("one of the first: %d", status)
		}
	}
	if n := g.ask("drop", `{}`); n.Count != 10 {
		t.Errorf("afterwards: %+v", n)
	}
}

func TestSweepRefusals(t *testing.T) {
	g := newGraves(t, memengine.New(nil))
	g.bury(4, "k", mixed)
	long := strings.Repeat("x", 301)
	for body, want := range map[string]string{
		`{"groups":[]}`:               "groups: is empty",
		`{"groups":"x"}`:              "groups: must be an array",
		`{"groups":[1]}`:              "groups[0]: must be a string",
		`{"groups":["` + long + `"]}`: "groups[0]: longer than 300 bytes",
		`{"groups":[` + strings.Repeat(`"",`, 200) + `""]}`: "groups: more than 200 entries",
		`{"error":""}`: "error: is empty",
		`{"error":"` + strings.Repeat("x", 100_000) + `"}`: "error: longer than ",
		`{"key_prefix":""}`: "key_prefix: is empty",
		`{"key_prefix":"` + strings.Repeat("x", 513) + `"}`:           "key_prefix: longer than 512 bytes",
		`{"from":"yesterday"}`:                                        "from: ",
		`{"from":"2030-01-01T00:00:00Z","to":"2030-01-01T00:00:00Z"}`: "to: nothing lies between",
		`{"limit":-1}`:       "limit: ",
		`{"dry_run":"yes"}`:  "dry_run: must be true or false",
		`{"regexp":".*"}`:    "regexp: no such field",
		`{"error":"\ud800"}`: "",
		`{} {}`:              "malformed JSON",
	} {
		for _, deed := range []string{"redrive", "drop"} {
			if w := g.send(t.Context(), deed, body); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s %.100s: %d %s", deed, body, w.Code, w.Body)
			}
		}
	}
	for _, call := range [][2]string{
		{"redrive", `{"ids":["1"],"error":"x"}`}, {"redrive", `{"ids":["1"],"dry_run":true}`}, {"drop", `{"ids":["1"]}`}, {"drop", ``},
	} {
		if w := g.send(t.Context(), call[0], call[1]); w.Code != 400 {
			t.Errorf("%s %s: %d %s", call[0], call[1], w.Code, w.Body)
		}
	}
	// What looks like a pattern is text.
	for _, body := range []string{`{"error":".*"}`, `{"groups":["%","*","no such order 1"]}`, `{"key_prefix":"*"}`, `{"error":"\u0000"}`} {
		if n := g.ask("drop", body); n.Count != 0 || n.Seen != 4 {
			t.Errorf("%s: %+v", body, n)
		}
	}
	g.holds(4, 0)
	if w := g.send(t.Context(), "drop", `{"limit":1}`); w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
