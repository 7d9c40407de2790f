package tarryprom

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests finds what a request counts in without the labels being looked up each time.
type requests struct {
	vecs *vectors

	mu  sync.Mutex // for new kinds, of which there are few
	all atomic.Pointer[map[request]answers]
}

// request is a kind of requests.
type request struct {
	route, method string
	status        int
}

// answers are what is counted of a kind of requests.
type answers struct {
	count prometheus.Counter
	took  *distribution
}

// of returns what a kind counts in.
func (r *requests) of(kind request) answers {
	if all := r.all.Load(); all != nil {
		if a, ok := (*all)[kind]; ok {
			return a
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := answers{
		r.vecs.requests.WithLabelValues(kind.route, kind.method, strconv.Itoa(kind.status)),
		r.vecs.requestTime.of(kind.route),
	}
	all := make(map[request]answers)
	if old := r.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	all[kind] = a
	r.all.Store(&all)
	return a
}

// Answered counts a request that a server has answered: server.Config.Answered. Each
// route, method and status has figures of its own: they must be few.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	a := m.requests.of(request{route, method, status})
	a.count.Inc()
	a.took.observe(took.Seconds())
}
