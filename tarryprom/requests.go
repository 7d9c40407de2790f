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
	all  atomic.Pointer[map[requestKind]answers]
}

// requestKind is a route, method and status.
type requestKind struct {
	route, method string
	status        int
}

// answers are the counters of a kind of requests.
type answers struct {
	count prometheus.Counter
	took  *distribution
}

// of returns the answers of a kind of requests.
func (r *requests) of(k requestKind) answers {
	if all := r.all.Load(); all != nil {
		if a, ok := (*all)[k]; ok {
			return a
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[requestKind]answers)
	if old := r.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	a := answers{r.vecs.requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status)), r.vecs.requestTime.of(k.route)}
	all[k] = a
	r.all.Store(&all)
	return a
}

// Answered counts a request that a server has answered, for server.Config.Answered. Each
// route, method and status has its own series, so there must be few.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	a := m.requests.of(requestKind{route, method, status})
	a.count.Inc()
	a.took.observe(took.Seconds())
}
