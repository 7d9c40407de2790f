package tarryprom

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// queues are the queues with series of their own, and the sum of all others. A queue keeps
// its series, since counters must not move.
type queues struct {
	vecs  *vectors
	named sync.Map // name → *series
	full  atomic.Bool
	other *series

	mu   sync.Mutex
	left int
}

// met returns the series in which a call about a queue counts. A failed call creates none,
// as the queue may not exist.
func (q *queues) met(name string, err error) *series {
	if err == nil {
		return q.of(name)
	}
	if s, ok := q.named.Load(name); ok {
		return s.(*series)
	}
	return q.other
}

// of returns the series in which a queue counts.
func (q *queues) of(name string) *series {
	if s, ok := q.named.Load(name); ok {
		return s.(*series)
	}
	if name == "" || name == Other || q.full.Load() {
		return q.other
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if s, ok := q.named.Load(name); ok {
		return s.(*series)
	}
	if q.left == 0 {
		q.full.Store(true)
		return q.other
	}
	q.left--
	s := &series{vecs: q.vecs, queue: name}
	q.named.Store(name, s)
	return s
}

// result is the value of a counter's label besides the queue.
type result int

const (
	none result = iota // no such label
	created
	kept
	replaced
	exists
	leased
	limit
	failed
	removed
	notFound
	notDue
	claimed
	stale
	acked
	dropped
	retried
	snoozed
	released
	buried
	died
	leaseLost
	selfSettled
	unconfirmed
	results
)

var resultNames = [results]string{"", "created", "kept", "replaced", "exists", "leased", "limit", "failed", "removed",
	"not_found", "not_due", "claimed", "stale", "acked", "dropped", "retried", "snoozed", "released", "buried", "died", "lease_lost", "self_settled", "unconfirmed"}

// series are the series of one queue, each created when first needed.
type series struct {
	vecs               *vectors
	queue              string
	counts             [kinds][results]atomic.Pointer[prometheus.Counter]
	lateness, handling atomic.Pointer[prometheus.Observer]
}

func (s *series) add(k kind, r result, n int) {
	c := s.counts[k][r].Load()
	if c == nil {
		labels := []string{s.queue, resultNames[r]}
		if r == none {
			labels = labels[:1]
		}
		made := s.vecs.counts[k].WithLabelValues(labels...)
		c = &made
		s.counts[k][r].Store(c)
	}
	(*c).Add(float64(n))
}

func (s *series) late(seconds float64) { observe(&s.lateness, s.vecs.lateness, s.queue, seconds) }
func (s *series) took(seconds float64) { observe(&s.handling, s.vecs.handling, s.queue, seconds) }

// stick counts a stuck handler, or with -1 one that has returned.
func (s *series) stick(n float64) {
	s.vecs.stuckNow.WithLabelValues(s.queue).Add(n)
	if n > 0 {
		s.add(stuck, none, 1)
	}
}

func observe(p *atomic.Pointer[prometheus.Observer], all *prometheus.HistogramVec, queue string, seconds float64) {
	h := p.Load()
	if h == nil {
		made := all.WithLabelValues(queue)
		h = &made
		p.Store(h)
	}
	(*h).Observe(max(0, seconds))
}

// vectors are the metrics that count events.
type vectors struct {
	counts [kinds]*prometheus.CounterVec

	lateness, handling *prometheus.HistogramVec
	stuckNow           *prometheus.GaugeVec

	calls       *prometheus.CounterVec
	callTime    *prometheus.HistogramVec
	idle        prometheus.Counter
	requests    *prometheus.CounterVec
	requestTime *prometheus.HistogramVec
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

// The native buckets of the histograms.
const (
	nativeFactor     = 1.1  // at most this much wider than the one before
	maxNativeBuckets = 100  // wider ones if there would be more
	zeroMost         = 1e-6 // what counts as 0 seconds
)

func newVectors() vectors {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histograms := func(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: maxNativeBuckets, NativeHistogramZeroThreshold: zeroMost,
		}, []string{label})
	}
	v := vectors{
		lateness:    histograms("tarry_lateness_seconds", "Time from due to the start of handling, or to the lease if outside this process's workers.", latenessBuckets, "queue"),
		handling:    histograms("tarry_handle_seconds", "Duration of handlers in this process.", handlingBuckets, "queue"),
		stuckNow:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tarry_stuck_handlers", Help: "Handlers that have not returned although their context has ended."}, []string{"queue"}),
		calls:       counter("tarry_store_calls_total", "Calls of the store by result.", "op", "result"),
		callTime:    histograms("tarry_store_call_seconds", "Duration of calls of the store.", callBuckets, "op"),
		idle:        prometheus.NewCounter(prometheus.CounterOpts{Name: "tarry_idle_leases_total", Help: "Lease calls of the store that returned no messages."}),
		requests:    counter("tarry_http_requests_total", "Requests answered.", "route", "method", "status"),
		requestTime: histograms("tarry_http_request_seconds", "Duration of requests, including waits for messages.", requestBuckets, "route"),
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

// Answered counts a request that a server has answered, for server.Config.Answered. There must
// be few routes, methods and statuses, since each combination has its own series.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	m.vecs.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.vecs.requestTime.WithLabelValues(route).Observe(took.Seconds())
}
