package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward/webhook"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/tarrytest"
)

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

// merchant answers each call with the next of its answers, the last repeating.
type merchant struct {
	t       *testing.T
	start   time.Time
	answers []http.HandlerFunc

	mu    sync.Mutex
	calls []time.Duration // since start
	ids   []string
}

func (m *merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.t.Error(err)
	}
	key, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		m.t.Error(err)
	}
	if err := key.Verify(body, r.Header); err != nil {
		m.t.Error(err)
	}
	if !strings.Contains(string(body), `"data":{"id":"42"}`) {
		m.t.Errorf("the merchant was told %s", body)
	}
	m.mu.Lock()
	m.calls = append(m.calls, time.Since(m.start))
	m.ids = append(m.ids, r.Header.Get("webhook-id"))
	answer := m.answers[min(len(m.calls), len(m.answers))-1]
	m.mu.Unlock()
	answer(w, r)
}

// told returns when the merchant was called.
func (m *merchant) told() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

func knows(http.ResponseWriter, *http.Request) {}

func fails(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "closed for lunch", http.StatusServiceUnavailable)
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func redirects(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://new.example/paid?token=secret", http.StatusMovedPermanently)
}

func gone(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "this shop has closed", http.StatusGone)
}

func later(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "60")
	w.WriteHeader(http.StatusTooManyRequests)
}

func drops(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

// look is what `tarry get` shows of the notice.
func look(t *testing.T, q *tarrytest.Client) tarry.Info {
	t.Helper()
	info, err := Paid.Get(t.Context(), q.Client, tarry.ByKey("42"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Info
}

// atWork tells a merchant that order 42 is paid, in virtual time, while test runs.
func atWork(t *testing.T, m *merchant, test func(t *testing.T, q *tarrytest.Client)) {
	synctest.Test(t, func(t *testing.T) {
		m.t, m.start = t, time.Now()
		l := nettest.Listen()
		shop := &http.Server{Handler: m}
		var all sync.WaitGroup
		all.Go(func() { _ = shop.Serve(l) })
		cfg := &webhook.Config{URL: "http://shop.example/paid", Dial: l.Dial}
		cfg.Options.Secrets = []string{secret}
		target, err := webhook.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // after the worker has ended
			target.Close()
			shop.Close()
			all.Wait()
		})
		q := tarrytest.NewInBubble(t)
		for range 2 { // told twice of one order
			if known, err := pushNotice(t.Context(), q.Client, "42", 1); err != nil || known {
				t.Fatal(known, err)
			}
		}
		q.Start(t.Context(), newWorker(q.Client, target, nil))
		test(t, q)
		if len(slices.Compact(slices.Clone(m.ids))) > 1 {
			t.Errorf("the calls have the ids %v", m.ids)
		}
	})
}

func TestScheduleUntilItIsGivenUp(t *testing.T) {
	m := &merchant{answers: []http.HandlerFunc{fails}}
	atWork(t, m, func(t *testing.T, q *tarrytest.Client) {
		var sum time.Duration
		var want []time.Duration
		for i, wait := range append([]time.Duration{0}, schedule...) {
			sum += wait
			want = append(want, sum)
			q.Advance(wait)
			info := look(t, q)
			if info.Attempt != uint32(i+1) || info.MaxAttempts != 6 || !strings.HasSuffix(info.LastError, "answered 503 Service Unavailable: closed for lunch") {
				t.Errorf("after call %d: %d of %d, %s", i+1, info.Attempt, info.MaxAttempts, info.LastError)
			}
			if i == len(schedule) {
				if info.State != tarry.Dead {
					t.Errorf("after the last call it is %s", info.State)
				}
			} else if next := m.start.Add(sum + schedule[i]); info.State != tarry.Scheduled || !info.Due.Equal(next) {
				t.Errorf("after call %d it is %s, due %s, want %s", i+1, info.State, info.Due, next)
			}
		}
		q.Advance(24 * time.Hour)
		if got := m.told(); !slices.Equal(got, want) {
			t.Errorf("called after %v, want %v", got, want)
		}
		// What was given up can be brought back.
		m.answers = []http.HandlerFunc{knows}
		if _, err := q.Redrive(t.Context(), Paid.Queue(), []tarry.ID{look(t, q).ID}, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if info := look(t, q); info.State != tarry.Finished {
			t.Errorf("brought back, it is %s", info.State)
		}
	})
}

// TestMerchantThatRecovers has a merchant that does everything wrong, and then does not.
func TestMerchantThatRecovers(t *testing.T) {
	m := &merchant{answers: []http.HandlerFunc{fails, hangs, redirects, drops, later, knows}}
	atWork(t, m, func(t *testing.T, q *tarrytest.Client) {
		q.Advance(2 * time.Hour)
		// 10 s were lost to silence; the 60 s of Retry-After are less than the schedule's wait.
		want := []time.Duration{0, 15 * time.Second, 55 * time.Second, 235 * time.Second, 835 * time.Second, 2635 * time.Second}
		if got := m.told(); !slices.Equal(got, want) {
			t.Errorf("called after %v, want %v", got, want)
		}
		if info := look(t, q); info.State != tarry.Finished || info.Ending != tarry.WasAcked {
			t.Errorf("it is %s, %s", info.State, info.Ending)
		}
		if known, err := pushNotice(t.Context(), q.Client, "42", 1); err != nil || !known {
			t.Errorf("told once more: %v, %v", known, err)
		}
		q.Advance(time.Hour)
		if n := len(m.told()); n != len(want) {
			t.Errorf("%d calls", n)
		}
	})
}

func TestMerchantThatWantsNoMore(t *testing.T) {
	m := &merchant{answers: []http.HandlerFunc{later, gone}}
	atWork(t, m, func(t *testing.T, q *tarrytest.Client) {
		q.Advance(24 * time.Hour)
		if got, want := m.told(), []time.Duration{0, time.Minute}; !slices.Equal(got, want) {
			t.Errorf("called after %v, want %v", got, want)
		}
		if info := look(t, q); info.State != tarry.Dead || info.Attempt != 2 || !strings.HasSuffix(info.LastError, "answered 410 Gone: this shop has closed") {
			t.Errorf("it is %s after %d calls: %s", info.State, info.Attempt, info.LastError)
		}
	})
}
