package tarryprom

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
