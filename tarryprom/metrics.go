package tarryprom

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tarryhq/tarry"
)

// Config configures Metrics. The zero value and nil are valid.
type Config struct {
	// MaxQueues bounds the queues with series of their own: the first ones seen. The others
	// are summed as the queue "_other". Default 100.
	MaxQueues int

	// Every is how old the metrics of the store's content may be. More frequent scrapes share
	// a collection. Default 10 s.
	Every time.Duration

	// Timeout bounds a collection, and how long a scrape waits for one. After that the
	// scrape gets the previous collection. Default 5 s.
	Timeout time.Duration
}

// The defaults of a Config.
const (
	DefaultMaxQueues = 100
	DefaultEvery     = 10 * time.Second
	DefaultTimeout   = 5 * time.Second
)

// Other is the sum of all queues beyond Config.MaxQueues, and of activity without a known
// queue.
const Other = "_other"

func (cfg *Config) withDefaults() Config {
	c := *cmp.Or(cfg, new(Config))
	c.MaxQueues = cmp.Or(max(c.MaxQueues, 0), DefaultMaxQueues)
	c.Every = cmp.Or(max(c.Every, 0), DefaultEvery)
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	return c
}

// Metrics counts what one client does. It is a prometheus.Collector and safe for concurrent
// use. Make it with New.
type Metrics struct {
	cfg  Config
	vecs vectors
	all  queues

	ops sync.Map // of operation, by name

	failing atomic.Bool // the last call of the engine failed

	mu           sync.Mutex
	client       *tarry.Client
	watched      map[string]func(export)
	latest       *collection   // the last complete one; nil: none
	lastComplete bool          // the last one completed
	lastBegan    time.Time     // start of the last one
	collecting   chan struct{} // closed when the one in progress ends; nil: none
}

// New returns Metrics without counts.
func New(cfg *Config) *Metrics {
	m := &Metrics{cfg: cfg.withDefaults(), vecs: newVectors(), watched: make(map[string]func(export))}
	m.all = queues{vecs: &m.vecs, left: m.cfg.MaxQueues, other: &series{vecs: &m.vecs, queue: Other}}
	return m
}

// Watch also exports what the store of a client holds, and the figures of its engine if that
// is an engine.Measurer. It replaces the client watched before.
func (m *Metrics) Watch(c *tarry.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client, m.latest, m.lastComplete, m.lastBegan = c, nil, true, time.Time{}
}

// maxScrapes is how many scrapes are answered at a time; more get 503.
const maxScrapes = 32

// Handler serves the metrics, with those of the Go runtime and of the process, from its own
// registry. It leaves out figures of the engine that are not valid. More than 32 scrapes at a
// time get 503.
func (m *Metrics) Handler() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes,
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelError),
	})
}

// AuditLost counts a line of an audit log that could not be written, for access.Audit.Lost.
func (m *Metrics) AuditLost() { m.vecs.auditLost.Inc() }

// Describe implements prometheus.Collector. It does not describe the engine's figures; only
// pedantic registries mind.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range m.vecs.collectors() {
		v.Describe(ch)
	}
	for _, d := range slices.Concat(stateDescs, watchedDescs) {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It waits for a collection from the store for at
// most Config.Timeout.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.collectStore(ch)
	m.collectWatched(ch)
	for _, v := range m.vecs.collectors() {
		v.Collect(ch)
	}
	m.collectFigures(ch) // last: of two metrics with a name, registries take the first
}
