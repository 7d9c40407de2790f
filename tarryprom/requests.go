package tarryprom

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests finds the counters of a request without label lookups.
type requests struct {
	vecs *vectors

	met [256]atomic.Pointer[answers] // the last used, by place

	mu  sync.Mutex // for new ones, which are rare
	all atomic.Pointer[map[string][]answers]
}

// place returns the slot to look in first. A real hash would cost more than everything else
// here.
func place(route, method string, status int) int {
	return (len(route)*31 + len(method)*7 + status) & 255
}

// answers are the counters of a route, method and status.
type answers struct {
	route, method string
	status        int
	count         prometheus.Counter
	took          *distribution
}

// of returns the answers of a route, method and status.
func (r *requests) of(route, method string, status int) *answers {
	p := &r.met[place(route, method, status)]
	if a := p.Load(); a != nil && a.status == status && a.route == route && a.method == method {
		return a
	}
	a := r.find(route, method, status)
	p.Store(a)
	return a
}

func (r *requests) find(route, method string, status int) *answers {
	if a := r.known(route, method, status); a != nil {
		return a
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.known(route, method, status); a != nil {
		return a
	}
	all := make(map[string][]answers)
	if old := r.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	all[route] = append(slices.Clone(all[route]), answers{route, method, status,
		r.vecs.requests.WithLabelValues(route, method, strconv.Itoa(status)), r.vecs.requestTime.of(route)})
	r.all.Store(&all)
	return r.known(route, method, status)
}

func (r *requests) known(route, method string, status int) *answers {
	all := r.all.Load()
	if all == nil {
		return nil
	}
	of := (*all)[route]
	for i := range of {
		if a := &of[i]; a.status == status && a.method == method {
			return a
		}
	}
	return nil
}

// Answered counts a request that a server has answered, for server.Config.Answered. Each
// route, method and status has its own series, so there must be few.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	a := m.requests.of(route, method, status)
	a.count.Inc()
	a.took.observe(took.Seconds())
}
