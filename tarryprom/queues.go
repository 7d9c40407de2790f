package tarryprom

import (
	"sync"
	"sync/atomic"

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
	lateness, handling atomic.Pointer[distribution]
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

func observe(p *atomic.Pointer[distribution], all *distributions, queue string, seconds float64) {
	h := p.Load()
	if h == nil {
		h = all.of(queue)
		p.Store(h)
	}
	h.observe(seconds)
}
