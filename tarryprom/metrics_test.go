package tarryprom

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// slow is an engine that counts how often it is asked for its queues, and may hang then.
type slow struct {
	engine.Whole
	asked atomic.Int64
	hang  atomic.Bool
}

func (e *slow) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	e.asked.Add(1)
	if e.hang.Load() {
		<-ctx.Done()
		return nil, "", ctx.Err()
	}
	return e.Whole.Queues(ctx, after, limit)
}

// values gathers metrics as they are written: name{label="value",…}, and histograms as
// their counts and sums.
func values(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	return valuesIn(t, m, prometheus.NewPedanticRegistry())
}

func valuesIn(t *testing.T, m *Metrics, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	reg.MustRegister(m)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			var labels []string
			for _, l := range x.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[name] = x.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				all[name] = x.GetGauge().GetValue()
			default:
				all[name+" count"], all[name+" sum"] = float64(x.GetHistogram().GetSampleCount()), x.GetHistogram().GetSampleSum()
				for _, b := range x.GetHistogram().GetBucket() {
					all[fmt.Sprintf("%s le %v", name, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return all
}

func want(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if g, ok := got[name]; !ok || math.Abs(g-v) > 1e-6 {
			t.Errorf("%s is %v (there: %t), want %v", name, g, ok, v)
		}
	}
}

func TestMetricsOfWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(nil)
		c := tarry.New(memengine.New(nil), &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		ctx := t.Context()
		for range 2 {
			_, _ = c.Push(ctx, "mail", nil, tarry.Key("k"))
		}
		_, _ = c.Push(ctx, "mail", nil, tarry.Key("later"), tarry.In(30*time.Minute))
		_ = c.Cancel(ctx, tarry.ByKey("nobody").Of("mail"))
		_, _ = c.Claim(ctx, tarry.ByKey("later").Of("mail"), tarry.LeaseOptions{})
		time.Sleep(2 * time.Second)
		got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{"mail"}, Max: 5})
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(got, err)
		}
		if _, err := c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoBury}}); err != nil {
			t.Fatal(err)
		}

		_, _ = c.Push(ctx, "work", nil)
		time.Sleep(3 * time.Second)
		w := tarry.NewWorker(c, nil)
		tarry.Handle(w, tarry.NewTopic[[]byte]("work"), func(context.Context, *tarry.Message[[]byte]) error {
			time.Sleep(time.Second)
			return errors.New("no luck")
		})
		run, cancel := context.WithCancel(ctx)
		go func() { time.Sleep(time.Second); cancel() }()
		_ = w.Run(run)

		want(t, values(t, m), map[string]float64{
			`tarry_pushes_total{outcome="created",queue="mail"}`:   2,
			`tarry_pushes_total{outcome="exists",queue="mail"}`:    1,
			`tarry_cancels_total{queue="mail",result="not_found"}`: 1,
			`tarry_claims_total{queue="mail",result="not_due"}`:    1,
			`tarry_leases_total{queue="mail"}`:                     1,
			`tarry_handled_total{queue="mail",result="buried"}`:    1,
			`tarry_deaths_total{queue="mail"}`:                     1,
			`tarry_lateness_seconds{queue="mail"} count`:           1,
			`tarry_lateness_seconds{queue="mail"} sum`:             2,
			`tarry_handled_total{queue="work",result="retried"}`:   1,
			`tarry_lateness_seconds{queue="work"} sum`:             3,
			`tarry_handle_seconds{queue="work"} sum`:               1,
			`tarry_store_calls_total{op="push",result="ok"}`:       4,
			`tarry_store_calls_total{op="claim",result="refused"}`: 1,

			`tarry_store_up{}`: 1,
			`tarry_queues{}`:   2,
			`tarry_messages{queue="mail",state="scheduled"}`:    1,
			`tarry_messages{queue="mail",state="dead"}`:         1,
			`tarry_messages{queue="mail",state="leased"}`:       0,
			`tarry_oldest_ready_seconds{queue="mail"}`:          0,
			`tarry_forecast_messages{queue="mail",within="1m"}`: 0,
			`tarry_forecast_messages{queue="mail",within="1h"}`: 1,
			`tarry_forecast_messages{queue="mail",within="1d"}`: 1,
			`tarry_paused{queue="mail"}`:                        0,
		})
	})
}

// However many queues there are, so many have figures of their own, and keep them.
func TestMetricsNameSoManyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(&Config{MaxQueues: 2})
		c := tarry.New(memengine.New(nil), &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		for _, q := range []string{"c", "b", "a", "c", "d", "_other"} {
			if _, err := c.Push(t.Context(), q, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		got := values(t, m)
		want(t, got, map[string]float64{
			`tarry_pushes_total{outcome="created",queue="c"}`:      2,
			`tarry_pushes_total{outcome="created",queue="b"}`:      1,
			`tarry_pushes_total{outcome="created",queue="_other"}`: 3,
			`tarry_messages{queue="_other",state="ready"}`:         3,
			`tarry_oldest_ready_seconds{queue="_other"}`:           1,
			`tarry_queues{}`: 5,
		})
		for name := range got {
			if strings.Contains(name, `queue="a"`) || strings.Contains(name, `queue="d"`) {
				t.Errorf("%s: a queue too many has a name", name)
			}
		}
	})
}

// Many scrapes at once, of 10,000 queues, ask the store once, and again when that is old.
func TestMetricsAskTheStoreOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slow{Whole: memengine.New(nil)}
		m := New(nil)
		c := tarry.New(e, &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		drafts := make([]tarry.Draft, 10_000)
		for i := range drafts {
			drafts[i] = tarry.NewDraft(fmt.Sprint("q", i), nil)
		}
		if _, err := c.PushMany(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
		h := m.Handler()
		scrape := func() {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
					if !strings.Contains(w.Body.String(), "tarry_queues 10000\n") || !strings.Contains(w.Body.String(), `tarry_messages{queue="_other",state="ready"} 9900`) {
						t.Errorf("status %d, of %d bytes", w.Code, w.Body.Len())
					}
				})
			}
			all.Wait()
		}
		scrape()
		if n := e.asked.Load(); n != 10 {
			t.Errorf("%d pages were asked for, want 10", n)
		}
		time.Sleep(DefaultEvery)
		scrape()
		if n := e.asked.Load(); n != 20 {
			t.Errorf("%d pages were asked for, want 20", n)
		}
	})
}

// A store that hangs holds a scrape up for so long only, and shows as down beside what
// it held before.
func TestMetricsOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &slow{Whole: memengine.New(nil)}
		m := New(nil)
		c := tarry.New(e, &tarry.Config{Meter: m.Meter()})
		defer c.Close()
		m.Watch(c)
		_, _ = c.Push(t.Context(), "q", nil)
		values(t, m)
		time.Sleep(time.Hour)
		e.hang.Store(true)
		start := time.Now()
		got := values(t, m)
		if took := time.Since(start); took > DefaultTimeout {
			t.Errorf("a scrape took %s", took)
		}
		synctest.Wait()
		maps.Copy(got, values(t, m))
		want(t, got, map[string]float64{`tarry_store_up{}`: 0, `tarry_messages{queue="q",state="ready"}`: 1, `tarry_pushes_total{outcome="created",queue="q"}`: 1})
		e.hang.Store(false)
		time.Sleep(DefaultEvery)
		want(t, values(t, m), map[string]float64{`tarry_store_up{}`: 1})
	})
}

func TestForecastTakesItsShareOfMinutes(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 15, 0, time.UTC)
	buckets := make([]tarry.Bucket, foresight/time.Minute)
	for i := range buckets {
		buckets[i] = tarry.Bucket{From: now.Truncate(time.Minute).Add(time.Duration(i) * time.Minute), Count: 100}
	}
	buckets[0].Count = 40
	got := forecast(buckets, now)
	for i, want := range []float64{30 + 25, 30 + 59*100 + 25, 30 + 1439*100 + 25} {
		if math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("within %s: %v, want %v", horizons[i].name, got[i], want)
		}
	}
}

// Who cancels and claims what is not there takes no names away from queues that are.
func TestWhatFailsTakesNoName(t *testing.T) {
	m := New(&Config{MaxQueues: 1})
	meter := m.Meter()
	meter.Cancelled("nothing", tarry.ErrNotFound, 1)
	meter.Claimed("nothing", tarry.ErrNotFound)
	meter.Pushed("orders", tarry.Created, nil, 1)
	if got := m.all.of("orders").queue; got != "orders" {
		t.Errorf("orders is counted as %s", got)
	}
}

// What is told at once is counted as if it were told one by one.
func TestEventsToldAtOnce(t *testing.T) {
	m := New(&Config{MaxQueues: 2})
	e := func(queue string, kind tarry.EventKind) tarry.Event {
		return tarry.Event{Kind: kind, Queue: queue, Duration: time.Second, Count: 1}
	}
	m.Meter().Handled([]tarry.Event{
		e("a", tarry.Acked), e("a", tarry.Acked), e("", tarry.EngineFailed), e("a", tarry.Died), e("b", tarry.Died), e("b", tarry.Buried),
		e("c", tarry.Acked), e("d", tarry.Acked), e("a", tarry.Acked),
	})
	m.Meter().Settled("b", tarry.Acked, 3)
	want(t, values(t, m), map[string]float64{
		`tarry_handled_total{queue="a",result="acked"}`:      3,
		`tarry_handled_total{queue="a",result="died"}`:       1,
		`tarry_deaths_total{queue="a"}`:                      1,
		`tarry_handled_total{queue="b",result="died"}`:       1,
		`tarry_handled_total{queue="b",result="buried"}`:     1,
		`tarry_handled_total{queue="b",result="acked"}`:      3,
		`tarry_deaths_total{queue="b"}`:                      2,
		`tarry_handled_total{queue="_other",result="acked"}`: 2,
		`tarry_handle_seconds{queue="a"} count`:              4,
		`tarry_handle_seconds{queue="b"} sum`:                2,
	})
}

// Handlers that are stuck are counted, and those that are stuck now are told apart.
func TestMetricsOfStuckHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(nil)
		c := tarry.New(memengine.New(nil), &tarry.Config{Meter: m.Meter()})
		w := tarry.NewWorker(c, &tarry.WorkerConfig{HandlerTimeout: time.Second})
		hang := make(chan struct{})
		tarry.Handle(w, tarry.NewTopic[[]byte]("work"), func(context.Context, *tarry.Message[[]byte]) error {
			<-hang
			return nil
		})
		for range 2 {
			if _, err := c.Push(t.Context(), "work", nil); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		want(t, values(t, m), map[string]float64{`tarry_stuck_handlers{queue="work"}`: 2, `tarry_stuck_total{queue="work"}`: 2})
		close(hang)
		synctest.Wait()
		want(t, values(t, m), map[string]float64{`tarry_stuck_handlers{queue="work"}`: 0, `tarry_stuck_total{queue="work"}`: 2})
		cancel()
		if err := errors.Join(<-done, c.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A histogram has classic buckets, and native ones that are at most a tenth wider than the one
// before. A negative duration counts as none.
func TestHistograms(t *testing.T) {
	m := New(nil)
	started := m.Meter().Started
	for _, late := range []time.Duration{-time.Second, 0, 2 * time.Millisecond, 2 * time.Millisecond, 3 * time.Second} {
		started("q", late)
	}
	var out dto.Metric
	if err := m.vecs.lateness.WithLabelValues("q").(prometheus.Metric).Write(&out); err != nil {
		t.Fatal(err)
	}
	h := out.GetHistogram()
	counts := make(map[float64]uint64)
	for _, b := range h.GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if counts[.0005] != 2 || counts[.001] != 2 || counts[.0025] != 4 || counts[5] != 5 || h.GetSampleCount() != 5 || h.GetSampleSum() != 3.004 {
		t.Errorf("the classic buckets are %v, of %d with a sum of %v", counts, h.GetSampleCount(), h.GetSampleSum())
	}
	if deltas := h.GetPositiveDelta(); h.GetSchema() != 3 || h.GetZeroCount() != 2 || len(deltas) != 2 || deltas[0] != 2 || deltas[1] != -1 {
		t.Errorf("the native buckets are of schema %d, %d at zero, then %v", h.GetSchema(), h.GetZeroCount(), deltas)
	}
}
