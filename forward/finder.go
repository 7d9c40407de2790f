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
// before and those with lost hints. A queue that has nothing to forward for idleAfter is
// released.
type finder struct {
	routes atomic.Pointer[Routes] // the current routes
	known  sync.Map               // queues that were found: name → *stay
	kick   chan struct{}          // one token: something was found

	mu    sync.Mutex
	fresh map[string]struct{} // found by hints

	// Used only by the router's goroutine.
	queues map[string]*stay // those of known that have a worker
}

// stay is the state of a queue that was found.
type stay struct {
	hinted atomic.Bool // since the last list
	empty  time.Time   // since when the queue is empty; zero: it is not
}

// idleAfter is how long a pattern's queue keeps its worker without messages.
const idleAfter = time.Minute

func newFinder() *finder {
	return &finder{kick: make(chan struct{}, 1), fresh: make(map[string]struct{}), queues: make(map[string]*stay)}
}

// heed switches to new routes.
func (f *finder) heed(rs Routes) {
	f.routes.Store(&rs)
	for q := range f.queues {
		if f.patterned(q) < 0 {
			f.drop(q)
		}
	}
}

// drop releases a queue.
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
	s, known := f.known.Load(queue)
	if !known {
		if f.patterned(queue) < 0 {
			return
		}
		s, known = f.known.LoadOrStore(queue, new(stay))
	}
	s.(*stay).hinted.Store(true)
	if known {
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
	s, _ := f.known.LoadOrStore(queue, new(stay))
	f.queues[queue] = s.(*stay)
	f.queues[queue].empty = time.Time{}
}

// list is the queues with something to forward, as the engine listed them.
type list struct {
	began  time.Time
	queues map[string]struct{}
}

// list lists the queues that match patterns.
func (f *finder) list(ctx context.Context, c *tarry.Client) (list, error) {
	l := list{time.Now(), make(map[string]struct{})}
	for q, err := range c.AllQueues(ctx) {
		if err != nil {
			return l, err
		}
		if q.Scheduled+q.Ready+q.Leased > 0 && f.patterned(q.Queue) >= 0 {
			l.queues[q.Queue] = struct{}{}
		}
	}
	return l, nil
}

// take applies a list. A queue that was pushed to since the last one is not empty, even if
// this one was too early to see it.
func (f *finder) take(l list) {
	for q := range l.queues {
		f.keep(q)
	}
	f.gather()
	for q, s := range f.queues {
		_, full := l.queues[q]
		switch hinted := s.hinted.Swap(false); {
		case full || hinted:
			s.empty = time.Time{}
		case s.empty.IsZero():
			s.empty = l.began
		case l.began.Sub(s.empty) >= idleAfter:
			f.drop(q)
			if s.hinted.Load() { // meanwhile
				f.keep(q)
			}
		}
	}
}
