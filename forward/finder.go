package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

// finder finds the queues that match patterns. The engine's hints report most of them at the
// next push. A list of all queues, made every few seconds, finds those that held messages
// before and those with lost hints.
//
// A queue that has nothing to forward for idleAfter is released in two steps, so that no push
// is missed. First its hints count again. If the next list then finds it empty too, it is
// released.
type finder struct {
	routes atomic.Pointer[Routes] // the current routes
	known  sync.Map               // queues with hints that are ignored
	kick   chan struct{}          // one token: something was found

	mu    sync.Mutex
	fresh map[string]struct{}

	// Used only by the router's goroutine.
	named  []string // named by routes, and in known
	queues map[string]*stay
}

// stay is the state of a queue that has a worker.
type stay struct {
	empty   time.Time // since when the queue is empty; zero: it is not
	leaving bool      // its hints count again; released if it stays empty
}

// idleAfter is how long a pattern's queue keeps its worker without messages.
const idleAfter = time.Minute

func newFinder() *finder {
	return &finder{kick: make(chan struct{}, 1), fresh: make(map[string]struct{}), queues: make(map[string]*stay)}
}

// heed switches to new routes.
func (f *finder) heed(rs Routes) {
	f.routes.Store(&rs)
	for _, q := range f.named {
		f.known.Delete(q)
	}
	for q := range f.queues {
		if f.patterned(q) < 0 {
			f.drop(q)
		}
	}
	f.named = nil
	for i := range rs {
		if !rs[i].pattern() {
			f.known.Store(rs[i].Queue, nil)
			f.named = append(f.named, rs[i].Queue)
		}
	}
}

// drop releases a queue; its hints count again.
func (f *finder) drop(queue string) {
	delete(f.queues, queue)
	f.known.Delete(queue)
}

// patterned returns the index of the route with a pattern that matches a queue, or -1.
func (f *finder) patterned(queue string) int {
	rs := *f.routes.Load()
	i := rs.Index(queue)
	if i >= 0 && !rs[i].pattern() {
		return -1
	}
	return i
}

// hint is called by the engine when a queue may have something to lease.
func (f *finder) hint(queue string) {
	if _, known := f.known.Load(queue); known || f.patterned(queue) < 0 {
		return
	}
	if _, known := f.known.LoadOrStore(queue, nil); known {
		return
	}
	f.mu.Lock()
	f.fresh[queue] = struct{}{}
	f.mu.Unlock()
	f.nudge()
}

// nudge wakes the router to handle what was found.
func (f *finder) nudge() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// gather collects the queues that hints reported.
func (f *finder) gather() {
	f.mu.Lock()
	fresh := f.fresh
	f.fresh = make(map[string]struct{})
	f.mu.Unlock()
	for q := range fresh {
		f.keep(q)
	}
}

// keep adds a queue that matches a pattern.
func (f *finder) keep(queue string) {
	if f.patterned(queue) < 0 { // the routes have changed
		f.drop(queue)
		return
	}
	s := f.queues[queue]
	if s == nil {
		s = new(stay)
		f.queues[queue] = s
	}
	*s = stay{}
	f.known.Store(queue, nil)
}

// list is the queues with something to forward, as the engine listed them.
type list struct {
	began  time.Time
	queues []string
	err    error
}

// look lists the queues that match patterns.
func (f *finder) look(ctx context.Context, c *tarry.Client) (l list) {
	l.began = time.Now()
	for q, err := range c.AllQueues(ctx) {
		if err != nil {
			l.err = err
			return l
		}
		if q.Scheduled+q.Ready+q.Leased > 0 && f.patterned(q.Queue) >= 0 {
			l.queues = append(l.queues, q.Queue)
		}
	}
	return l
}

// take applies a list.
func (f *finder) take(l list) {
	full := make(map[string]struct{}, len(l.queues))
	for _, q := range l.queues {
		full[q] = struct{}{}
		f.keep(q)
	}
	f.gather()
	for q, s := range f.queues {
		if _, is := full[q]; is {
			continue
		}
		switch {
		case s.leaving && s.empty.Before(l.began):
			f.drop(q)
		case s.empty.IsZero():
			s.empty = l.began
		case !s.leaving && l.began.Sub(s.empty) >= idleAfter:
			s.leaving, s.empty = true, time.Now()
			f.known.Delete(q)
		}
	}
}
