package cost

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What is measured is what it is called, and does its jobs.
func TestSystems(t *testing.T) {
	var exports atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		exports.Add(1)
	}))
	defer receiver.Close()
	for way, is := range map[string]struct{ counts, traces bool }{
		"nothing": {}, "metrics": {counts: true}, "trends": {counts: true}, "traces-0": {}, "traces-100": {traces: true},
	} {
		exports.Store(0)
		p := start(t, "mem:", way, receiver.URL, true)
		for _, j := range jobs {
			if cpu, took := j.measure(t, p, 200); cpu <= 0 || took <= 0 {
				t.Errorf("%s with %s took %v s, %v of a processor", j.name, way, took, cpu)
			}
		}
		resp, err := http.Get("http://" + p.addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if counts := strings.Contains(string(page), `tarry_pushes_total{outcome="created",queue="orders"} 600`); counts != is.counts {
			t.Errorf("with %s it counts: %t", way, counts)
		}
		if traces := exports.Load() > 0; traces != is.traces {
			t.Errorf("with %s it traces: %t", way, traces)
		}
	}
}

// Who looks is told while messages are pushed, at the rate that was asked for or faster.
func TestViewers(t *testing.T) {
	*viewers, *turn, *lead = 5, 500*time.Millisecond, 100*time.Millisecond
	p := start(t, "mem:", "trends", "", false)
	v := look(t, p.addr)
	for _, kind := range kinds {
		for _, rate := range []int{100, 0} {
			got := measureViewers(t, p, v, kind, rate)
			if kind != "overview" && got.told == 0 || (got.read > 0) != (kind == "page") || got.rate <= 0 || got.server <= 0 {
				t.Errorf("%s at %d: %+v", kind, rate, got)
			}
		}
	}
	if got := measureViewers(t, p, v, "", 100); got.told != 0 || got.rate > 110 {
		t.Errorf("without viewers: %+v", got)
	}
}
