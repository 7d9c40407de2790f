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

// requests finds what a request counts in without the labels being looked up each time.
type requests struct {
	vecs *vectors

	met [256]atomic.Pointer[answers] // what was met last, by place

	mu  sync.Mutex // for new kinds, of which there are few
	all atomic.Pointer[map[string][]answers]
}

// place is where a kind is looked for first: its hash would cost more than all else here.
func place(route, method string, status int) int {
	return (len(route)*31 + len(method)*7 + status) & 255
}

// answers are what is counted of the requests of a route with a method and a status.
type answers struct {
	route, method string
	status        int
	count         prometheus.Counter
	took          *distribution
}

// of returns what the requests of a kind count in.
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

// Answered counts a request that a server has answered: server.Config.Answered. Each
// route, method and status has figures of its own: they must be few.
func (m *Metrics) Answered(route, method string, status int, took time.Duration) {
	a := m.requests.of(route, method, status)
	a.count.Inc()
	a.took.observe(took.Seconds())
}
