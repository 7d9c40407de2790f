package tarryprom

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// vectors are the metrics that count events.
type vectors struct {
	counts [kinds]*prometheus.CounterVec

	lateness, handling *distributions
	stuckNow           *prometheus.GaugeVec

	calls       *prometheus.CounterVec
	callTime    *distributions
	idle        prometheus.Counter
	requests    *prometheus.CounterVec
	requestTime *distributions
	auditLost   prometheus.Counter
}

// kind is a counter per queue.
type kind int

const (
	pushes kind = iota
	leases
	handled
	cancels
	claims
	expired
	deaths
	stuck
	kinds
)

// The buckets of the histograms, in seconds.
var (
	latenessBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}
	handlingBuckets = []float64{.0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600}
	callBuckets     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	requestBuckets  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

func newVectors() vectors {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	v := vectors{
		lateness:    newDistributions("tarry_lateness_seconds", "Time from due to the start of handling, or to the lease if outside this process's workers.", latenessBuckets, "queue"),
		handling:    newDistributions("tarry_handle_seconds", "Duration of handlers in this process.", handlingBuckets, "queue"),
		stuckNow:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tarry_stuck_handlers", Help: "Handlers that have not returned although their context has ended."}, []string{"queue"}),
		calls:       counter("tarry_store_calls_total", "Calls of the store by result.", "op", "result"),
		callTime:    newDistributions("tarry_store_call_seconds", "Duration of calls of the store.", callBuckets, "op"),
		idle:        prometheus.NewCounter(prometheus.CounterOpts{Name: "tarry_idle_leases_total", Help: "Lease calls of the store that returned no messages."}),
		requests:    counter("tarry_http_requests_total", "Requests answered.", "route", "method", "status"),
		requestTime: newDistributions("tarry_http_request_seconds", "Duration of requests, including waits for messages.", requestBuckets, "route"),
		auditLost:   prometheus.NewCounter(prometheus.CounterOpts{Name: "tarry_audit_lines_lost_total", Help: "Lines of the audit log that could not be written."}),
	}
	v.counts = [kinds]*prometheus.CounterVec{
		pushes:  counter("tarry_pushes_total", "Messages pushed by outcome.", "queue", "outcome"),
		leases:  counter("tarry_leases_total", "Messages leased.", "queue"),
		handled: counter("tarry_handled_total", "Leases settled by result.", "queue", "result"),
		cancels: counter("tarry_cancels_total", "Cancels by result.", "queue", "result"),
		claims:  counter("tarry_claims_total", "Claims by result.", "queue", "result"),
		expired: counter("tarry_expired_total", "Messages dropped past their expiry.", "queue"),
		deaths:  counter("tarry_deaths_total", "Messages that became dead.", "queue"),
		stuck:   counter("tarry_stuck_total", "Handlers that did not return although their context had ended.", "queue"),
	}
	return v
}

func (v *vectors) collectors() []prometheus.Collector {
	all := []prometheus.Collector{v.lateness, v.handling, v.stuckNow, v.calls, v.callTime, v.idle, v.requests, v.requestTime, v.auditLost}
	for _, c := range v.counts {
		all = append(all, c)
	}
	return all
}

// requests finds the counters of a request without label lookups.
type requests struct {
	vecs *vectors
	mu   sync.Mutex // for new kinds, which are rare
	all  atomic.Pointer[map[requestKind]requestCounters]
}

// requestKind is a route, method and status.
type requestKind struct {
	route, method string
	status        int
}

// requestCounters are the counters of a kind of requests.
type requestCounters struct {
	count prometheus.Counter
	took  *distribution
}

// counters returns the counters of a kind of requests.
func (r *requests) counters(k requestKind) requestCounters {
	if all := r.all.Load(); all != nil {
		if a, ok := (*all)[k]; ok {
			return a
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[requestKind]requestCounters)
	if old := r.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	a := requestCounters{r.vecs.requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status)), r.vecs.requestTime.of(k.route)}
	all[k] = a
	r.all.Store(&all)
	return a
}

// Answered counts a request that a server has answered, for server.Config.Answered. There must
// be few routes, methods and statuses, since each combination has its own series.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	a := m.requests.counters(requestKind{route, method, status})
	a.count.Inc()
	a.took.observe(took.Seconds())
}
