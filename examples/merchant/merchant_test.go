package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
)

// merchant answers the calls from the answers-th on.
type merchant struct {
	start   time.Time
	answers int

	mu    sync.Mutex
	calls []time.Duration // since start
}

func (m *merchant) call(context.Context, Payment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, time.Since(m.start))
	if m.answers == 0 || len(m.calls) < m.answers {
		return errors.New("nobody answers")
	}
	return nil
}

// atWork tells the merchant of payment 42, twice, lets time pass, and returns how
// the queue then stands.
func atWork(t *testing.T, m *merchant, d time.Duration) (q tarry.QueueInfo, dead []tarry.Info) {
	c, err := tarry.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	m.start = time.Now()
	for range 2 {
		if err := tell(ctx, c, Payment{ID: "42"}); err != nil {
			t.Fatal(err)
		}
	}
	var work sync.WaitGroup
	work.Go(func() {
		if err := newWorker(c, m.call, nil).Run(ctx); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(d) // of the bubble's time
	stop()
	work.Wait()
	for info, err := range Paid.List(t.Context(), c, tarry.Dead) {
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, info)
	}
	if q, err = c.Queue(t.Context(), Paid.Queue()); err != nil {
		t.Fatal(err)
	}
	return q, dead
}

func TestCalledUntilHeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &merchant{answers: 5}
		q, dead := atWork(t, m, 24*time.Hour)
		want := []time.Duration{0, 15 * time.Second, 45 * time.Second, 225 * time.Second, 405 * time.Second}
		if !reflect.DeepEqual(m.calls, want) {
			t.Errorf("called after %v, want %v", m.calls, want)
		}
		if len(dead) > 0 || q.Scheduled+q.Ready+q.Leased > 0 {
			t.Errorf("after he has answered there is %+v", q)
		}
	})
}

func TestDeadWhenHeNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &merchant{}
		q, dead := atWork(t, m, 24*time.Hour)
		if len(m.calls) != maxCalls {
			t.Errorf("%d calls, want %d", len(m.calls), maxCalls)
		}
		if len(dead) != 1 || dead[0].Key != "42" || !strings.Contains(dead[0].LastError, "nobody answers") {
			t.Errorf("dead are %+v, want payment 42 with its last error", dead)
		}
		if q.Scheduled+q.Ready+q.Leased > 0 {
			t.Errorf("still live: %+v", q)
		}
	})
}

func TestProgramOverHTTP(t *testing.T) {
	var got sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store("key", r.Header.Get("Idempotency-Key"))
	}))
	defer srv.Close()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--url", srv.URL, "--payment", "42"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if key, _ := got.Load("key"); key != "42" || stdout.String() != "call 1: the merchant knows\n" {
		t.Errorf("the merchant got the key %v; standard output %q", key, &stdout)
	}
}

func TestHTTPAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	call := post(srv.Client())
	if err := call(t.Context(), Payment{"42", srv.URL}); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("503: %v", err)
	}
	if err := call(t.Context(), Payment{"42", "http://[oops"}); err == nil || !strings.HasPrefix(err.Error(), "bury") {
		t.Errorf("no URL: %v, want it buried", err)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--url", "http://x"}, {"--payment", "1"}, {"--nonsense"}, {"--url", "u", "--payment", "1", "more"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &stderr, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--url", "u", "--payment", "1", "--store", "cupboard:"}, &stderr, &stderr); code != 1 {
		t.Errorf("unknown store: exit code %d, %s", code, &stderr)
	}
	if n := strings.Count(stderr.String(), "\n"); n != 1 {
		t.Error(fmt.Sprintf("%d lines", n), &stderr)
	}
}
