package httpengine_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestOpenUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	u := strings.Replace(s.URL, "http://", "http://user:secret@", 1)
	_, err := engine.Open(t.Context(), u)
	var e *engine.Error
	if !errors.Is(err, engine.ErrInvalid) || !errors.As(err, &e) || !strings.Contains(e.Hint, s.URL) || strings.Contains(err.Error(), "secret") {
		t.Errorf("not a tarry server: %v", err)
	}
	s.Close()
	_, err = engine.Open(t.Context(), u)
	if !errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &e) || !strings.Contains(e.Hint, s.URL) || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range []string{"http:", "http://", "http://h?x=1", "http:///path", "http://h?timeout=0s", "http://h?token_file=/nowhere"} {
		if _, err := engine.Open(t.Context(), bad); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAnswersOfAGateway: an answer that is not a tarry server's says nothing of what was sent.
func TestAnswersOfAGateway(t *testing.T) {
	back, err := url.Parse(serve(t, memengine.New(nil)))
	if err != nil {
		t.Fatal(err)
	}
	var gone atomic.Int32 // a status; 0: requests pass
	proxy := httputil.NewSingleHostReverseProxy(back)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := gone.Load(); status != 0 {
			http.Error(w, "no route", int(status))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer s.Close()
	e := open(t, s.URL)
	defer e.Close()
	for _, status := range []int32{http.StatusNotFound, http.StatusForbidden, http.StatusBadGateway} {
		gone.Store(status)
		if _, err := e.Settle(t.Context(), []engine.Settlement{{Token: "x", Do: engine.Ack}}); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "no route") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestTokenAndPath(t *testing.T) {
	seen := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
	}))
	defer s.Close()
	u, _ := url.Parse(strings.Replace(s.URL, "http://", "http://secret@", 1) + "/below/")
	if _, err := httpengine.Open(t.Context(), u, nil); err == nil {
		t.Error("an empty answer is no tarry server's")
	}
	if got := <-seen; got != "/below/v1/info Bearer secret" {
		t.Error(got)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("filed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(t.Context(), s.URL+"?timeout=1m&token_file="+url.QueryEscape(file)); err == nil {
		t.Error("an empty answer is no tarry server's")
	}
	if got := <-seen; got != "/v1/info Bearer filed" {
		t.Error(got)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := engine.Open(t.Context(), s.URL+"?token_file="+url.QueryEscape(file))
	if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "token_file: others may read or write "+file+", its mode is 0644 (chmod 600 ") {
		t.Error(err)
	}
}

// full is an engine whose disk is full.
type full struct{ *memengine.Engine }

func (full) Push(context.Context, []engine.Message) ([]engine.PushResult, error) {
	return []engine.PushResult{{Err: &engine.Error{Op: "push", Queue: "q", Key: "k", Err: engine.ErrNoSpace, Hint: "free some"}}}, nil
}

func TestErrorsComeBack(t *testing.T) {
	e := open(t, serve(t, full{memengine.New(nil)}))
	defer e.Close()
	m := tarry.NewDraft("q", nil, tarry.Key("k"))
	r, err := e.Push(t.Context(), []engine.Message{m})
	var ee *engine.Error
	if err != nil || !errors.Is(r[0].Err, engine.ErrNoSpace) || !errors.Is(r[0].Err, engine.ErrLimit) || !errors.As(r[0].Err, &ee) || ee.Hint != "free some" {
		t.Errorf("%v, %v", r, err)
	}
	const want = `tarry: push q key "k": no space left on disk: limit reached (free some)`
	if r[0].Err.Error() != want {
		t.Errorf("%q, want %q", r[0].Err, want)
	}
}

// What is in the way of a push is described, whichever way the push goes.
func TestWhatIsInTheWayComesBack(t *testing.T) {
	e := open(t, serve(t, memengine.New(nil)))
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	live, err := c.Push(t.Context(), "q", nil, tarry.Key("k"), tarry.In(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := tarry.Pushed{ID: live.ID, Queue: "q", Key: "k", Due: live.Due, State: tarry.Scheduled}
	got, err := c.Push(t.Context(), "q", nil, tarry.Key("k"))
	if !errors.Is(err, engine.ErrExists) || got != want {
		t.Errorf("a single push: %+v, %v; want %+v", got, err, want)
	}
	many, err := c.PushMany(t.Context(), []tarry.Draft{tarry.NewDraft("q", nil), tarry.NewDraft("q", nil, tarry.Key("k"))})
	if err != nil || !errors.Is(many[1].Err, engine.ErrExists) {
		t.Fatalf("many: %+v, %v", many, err)
	}
	if many[1].Err = nil; many[1] != want {
		t.Errorf("many: %+v, want %+v", many[1], want)
	}
	if _, err := c.Claim(t.Context(), tarry.ByKey("k").Of("q"), tarry.LeaseOptions{}); !errors.Is(err, engine.ErrNotDue) {
		t.Error(err)
	}
	if _, err := c.Rearm(t.Context(), "q", "k", tarry.In(0), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Claim(t.Context(), tarry.ByKey("k").Of("q"), tarry.LeaseOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Rearm(t.Context(), "q", "k", tarry.In(0), nil); !errors.Is(err, engine.ErrLeased) || got.ID != live.ID || got.State != tarry.Leased {
		t.Errorf("a rearm that comes too late: %+v, %v", got, err)
	}
}

func TestLargeBatchesAreSplit(t *testing.T) {
	e := open(t, serve(t, memengine.New(nil)))
	defer e.Close()
	body := make([]byte, 900<<10)
	msgs := make([]engine.Message, 20) // 24 MB in base64; a request may have 8
	for i := range msgs {
		msgs[i] = tarry.NewDraft("q", body)
	}
	r, err := e.Push(t.Context(), msgs)
	if err != nil || slices.ContainsFunc(r, func(r engine.PushResult) bool { return r.Err != nil }) || len(r) != len(msgs) {
		t.Fatalf("%v, %v", r, err)
	}
	many := slices.Repeat([]engine.Ref{{Queue: "q", ID: 1 << 40}}, 10_001)
	if errs, err := e.Cancel(t.Context(), many); err != nil || len(errs) != len(many) || !errors.Is(errs[10_000], engine.ErrNotFound) {
		t.Errorf("%d, %v", len(errs), err)
	}
	if _, err := e.PushAtomic(t.Context(), msgs); !errors.Is(err, engine.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestLeaseWaitSharesOut(t *testing.T) {
	e := open(t, serve(t, memengine.New(nil)))
	defer e.Close()
	for _, q := range []string{"a", "a", "a", "b", "b", "b", "c"} {
		if _, err := e.Push(t.Context(), []engine.Message{tarry.NewDraft(q, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	w := engine.Wait{Queues: []string{"a", "b", "c"}, Max: 4, Room: map[string]int{"b": 1, "c": 0}, For: time.Second, TTR: time.Hour, Worker: "w"}
	got, err := e.LeaseWait(t.Context(), w)
	of := make(map[string]int)
	for _, l := range got.Messages {
		of[l.Queue]++
		if d := l.Deadline.Sub(got.Now); d < 59*time.Minute || d > 61*time.Minute {
			t.Errorf("%s's lease lasts %v", l.Queue, d)
		}
		if i, err := e.Get(t.Context(), engine.Ref{Queue: l.Queue, ID: l.ID}); err != nil || l.Worker != "w" || i.Worker != "w" {
			t.Errorf("%s is leased by %q, when looked up by %q, %v", l.Queue, l.Worker, i.Worker, err)
		}
	}
	if err != nil || of["a"] != 3 || of["b"] != 1 || len(of) != 2 {
		t.Errorf("%v, %v", of, err)
	}
}

func TestCloseEndsLongPolls(t *testing.T) {
	e := open(t, serve(t, memengine.New(nil)))
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := e.LeaseWait(context.Background(), engine.Wait{Queues: []string{"q"}, Max: 1, For: time.Minute})
		done <- err
	}()
	<-started
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
}
