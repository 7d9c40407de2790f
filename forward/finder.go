package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

// finder finds the queues that patterns fit. The engine's hints tell of most as soon as
// something is pushed; the list of all queues, looked through every few seconds, of those
// that held something before, and of those whose hints are lost.
//
// A queue that holds nothing to hand on for idleAfter is let go of, in two steps, so that no
// push falls between: first hints of it are heeded again, and when the list after that
// shows nothing either, it goes.
type finder struct {
	routes atomic.Pointer[Routes] // those that count
	known  sync.Map               // queues whose hints say nothing new
	kick   chan struct{}          // holds one token: something was found

	mu    sync.Mutex
	fresh map[string]struct{}

	// Of the router's goroutine alone.
	named  []string // by routes, and known
	queues map[string]*stay
}

// stay is what is known of a queue that has a worker.
type stay struct {
	empty   time.Time // since when nothing was found in it; zero: something is
	leaving bool      // hints of it are heeded, and it goes if it stays empty
}

// idleAfter is for how long a queue of a pattern keeps its worker that has nothing to
// hand on.
const idleAfter = time.Minute

func newFinder() *finder {
	return &finder{kick: make(chan struct{}, 1), fresh: make(map[string]struct{}), queues: make(map[string]*stay)}
}

// heed goes on with other routes.
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

// drop lets go of a queue; hints of it are heeded.
func (f *finder) drop(queue string) {
	delete(f.queues, queue)
	f.known.Delete(queue)
}

// patterned returns the number of the route whose pattern takes a queue; -1: there is none.
func (f *finder) patterned(queue string) int {
	rs := *f.routes.Load()
	i := rs.Index(queue)
	if i >= 0 && !rs[i].pattern() {
		return -1
	}
	return i
}

// hint is called by the engine whenever something may be leased from a queue.
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

// nudge has the router see to what is found.
func (f *finder) nudge() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// gather takes in what hints have told of.
func (f *finder) gather() {
	f.mu.Lock()
	fresh := f.fresh
	f.fresh = make(map[string]struct{})
	f.mu.Unlock()
	for q := range fresh {
		f.keep(q)
	}
}

// keep has a queue of a pattern stay.
func (f *finder) keep(queue string) {
	if f.patterned(queue) < 0 { // other routes count by now
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

// list is the queues that the engine listed, and had something to hand on.
type list struct {
	began  time.Time
	queues []string
	err    error
}

// look lists the queues that patterns fit.
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

// take takes in a list.
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
