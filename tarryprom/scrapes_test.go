package tarryprom

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// stalling is an engine that does not tell its queues, whatever the context says, until it
// is freed.
type stalling struct {
	engine.Whole
	asked atomic.Int64
	freed chan struct{}
}

func (e *stalling) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	e.asked.Add(1)
	<-e.freed
	return e.Whole.Queues(ctx, after, limit)
}

// A collection that lasts longer than the figures may be old stays the only one.
func TestMetricsAskASlowStoreOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &stalling{Whole: memengine.New(nil), freed: make(chan struct{})}
		m := New(&Config{Every: time.Second, Timeout: 3 * time.Second})
		c := tarry.New(e, &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		for range 3 {
			start := time.Now()
			values(t, m)
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("a scrape took %s, want the 3 s that it may wait", took)
			}
			if n := e.asked.Load(); n != 1 {
				t.Errorf("the store was asked %d times at once", n)
			}
		}
		close(e.freed)
		synctest.Wait()
		time.Sleep(time.Second)
		want(t, values(t, m), map[string]float64{`tarry_store_up{}`: 1, `tarry_queues{}`: 0})
		if n := e.asked.Load(); n != 2 {
			t.Errorf("the store was asked %d times, want again when it could answer", n)
		}
	})
}

// A crowd of scrapes of 10,000 queues whose store hangs: so many wait as may, the others
// are refused at once, nobody who pushes waits, and there are no more series than allowed.
func TestMetricsUnderACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &stalling{Whole: memengine.New(nil), freed: make(chan struct{})}
		m := New(nil)
		c := tarry.New(e, &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		h := m.Handler()
		var (
			crowd             sync.WaitGroup
			answered, refused atomic.Int64
			last              atomic.Pointer[string]
			scrapes           = maxScrapes * 4
			start             = time.Now()
		)
		for range scrapes {
			crowd.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				switch took := time.Since(start); {
				case w.Code == http.StatusOK && took == DefaultTimeout:
					answered.Add(1)
					body := w.Body.String()
					last.Store(&body)
				case w.Code == http.StatusServiceUnavailable && took == 0:
					refused.Add(1)
				default:
					t.Errorf("status %d after %s", w.Code, took)
				}
			})
		}
		synctest.Wait()
		drafts := make([]tarry.Draft, 10_000)
		for i := range drafts {
			drafts[i] = tarry.NewDraft(fmt.Sprint("q", i), nil)
		}
		if _, err := c.PushMany(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("pushes waited %s for the scrapes", took)
		}
		crowd.Wait()
		if a, r := answered.Load(), refused.Load(); a != maxScrapes || r != int64(scrapes)-a {
			t.Errorf("%d scrapes were answered and %d refused", a, r)
		}
		close(e.freed)
		synctest.Wait()
		if body := last.Load(); body == nil {
			t.Error("no scrape was answered")
		} else if n := strings.Count(*body, "\ntarry_pushes_total{"); n != DefaultMaxQueues+1 {
			t.Errorf("%d series of pushes, want one a queue with a name and one for the others", n)
		}
		time.Sleep(DefaultEvery)
		got := values(t, m)
		want(t, got, map[string]float64{`tarry_queues{}`: 10_000, `tarry_messages{queue="_other",state="ready"}`: 10_000 - DefaultMaxQueues})
		if most := 20 * (DefaultMaxQueues + 1); len(got) > most {
			t.Errorf("%d series, more than %d", len(got), most)
		}
	})
}
