package tarryprom

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tarryhq/tarry"
)

// Config sets up Metrics. The zero value, and a nil Config, work.
type Config struct {
	// MaxQueues bounds how many queues have figures of their own: those that are seen
	// first. The others sum up as the queue "_other". Default 100.
	MaxQueues int

	// Every is how old the figures of what the store holds may be: between two
	// collections however many scrapes get the same. Default 10 s.
	Every time.Duration

	// Timeout bounds a collection, and how long a scrape waits for one; a scrape that
	// has waited for so long gets the figures of the one before. Default 5 s.
	Timeout time.Duration
}

// The defaults of a Config.
const (
	DefaultMaxQueues = 100
	DefaultEvery     = 10 * time.Second
	DefaultTimeout   = 5 * time.Second
)

// Other is the queue that all beyond Config.MaxQueues are summed up as, and those of which
// the engine cannot tell.
const Other = "_other"

func (cfg *Config) withDefaults() Config {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.MaxQueues <= 0 {
		c.MaxQueues = DefaultMaxQueues
	}
	if c.Every <= 0 {
		c.Every = DefaultEvery
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return c
}

// Metrics counts what one client does. It is a prometheus.Collector, and may be used by
// many goroutines. Make it with New.
type Metrics struct {
	cfg  Config
	vecs vectors
	all  queues
	ops  atomic.Pointer[[]*operation]
	own  map[string]bool

	requests requests

	failing atomic.Bool // the last call of the engine failed

	mu     sync.Mutex
	client *tarry.Client
	end    func() time.Time // of the certificate; nil: there is none
	latest *collection      // the last that is whole; nil: none
	up     bool             // the last one came to its end
	began  time.Time        // the last one
	under  chan struct{}    // closed when the one under way is over; nil: none is
}

// New returns Metrics that nothing is counted in yet.
func New(cfg *Config) *Metrics {
	m := &Metrics{cfg: cfg.withDefaults(), vecs: newVectors()}
	m.requests.vecs = &m.vecs
	m.all = queues{vecs: &m.vecs, left: m.cfg.MaxQueues, other: &series{vecs: &m.vecs, queue: Other}}
	m.own = m.ownNames()
	return m
}

// Watch has the metrics tell what the store of a client holds, and what its engine measures
// of itself where that is an engine.Measurer. What it replaces is
// watched no more.
func (m *Metrics) Watch(c *tarry.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client, m.latest, m.up, m.began = c, nil, true, time.Time{}
}

// WatchCertificate has the metrics tell until when the certificate of a server is good, as
// server.Certificate.End has it.
func (m *Metrics) WatchCertificate(end func() time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end = end
}

var certificateDesc = prometheus.NewDesc("tarry_tls_certificate_expiration_timestamp_seconds", "Until when the certificate of the server is good.", nil, nil)

func (m *Metrics) collectCertificate(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	end := m.end
	m.mu.Unlock()
	if end != nil {
		ch <- prometheus.MustNewConstMetric(certificateDesc, prometheus.GaugeValue, float64(end().Unix()))
	}
}

// maxScrapes is how many scrapes are answered at a time; more get 503.
const maxScrapes = 32

// Handler serves the metrics, with those of the Go runtime and of the process, from a
// registry of its own. More than 32 scrapes at a time get 503.
func (m *Metrics) Handler() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes})
}

// AuditLost counts a line of an audit log that could not be written: access.Audit.Lost.
func (m *Metrics) AuditLost() { m.vecs.auditLost.Inc() }

// Describe is prometheus.Collector's. What the engine measures of itself it describes only if
// a client is watched by then, which nobody but a pedantic registry minds.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.describeOwn(ch)
	m.describeFigures(ch)
}

func (m *Metrics) describeOwn(ch chan<- *prometheus.Desc) {
	for _, v := range m.vecs.collectors() {
		v.Describe(ch)
	}
	for _, d := range stateDescs {
		ch <- d
	}
	ch <- certificateDesc
}

// Collect is prometheus.Collector's. It waits for a collection from the store for no
// longer than Config.Timeout.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.collectStore(ch)
	m.collectFigures(ch)
	m.collectCertificate(ch)
	for _, v := range m.vecs.collectors() {
		v.Collect(ch)
	}
}
