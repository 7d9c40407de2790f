package timer

import (
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// handMost is how many entries a worker takes from the core at once, at most.
	handMost = 32
	// handQuick is how long a handler may take on average for its worker to take
	// more at once the next time.
	handQuick = 2 * time.Microsecond
)

// hand is what a worker has taken from the core and not begun. As long as its
// handlers are quick a worker takes more and more at once, for the Runner's lock
// costs more than they do. Should one of them be slow, the others take the rest
// out of its hand.
type hand[T any] struct {
	vals [handMost]T
	n    int32        // how many were taken; written under the Runner's lock by its worker alone
	next atomic.Int32 // the first not begun
	size int          // how many to take
	last time.Time    // when it was filled
	dead bool         // its worker has ended
}

// pop takes one out of the hand. Its worker needs no lock for that, others do.
func (h *hand[T]) pop() (v T, ok bool) {
	i := h.next.Add(1) - 1
	if i >= h.n {
		h.next.Store(h.n)
		return v, false
	}
	var zero T
	v, h.vals[i] = h.vals[i], zero
	return v, true
}

func (h *hand[T]) left() bool { return h.next.Load() < h.n }

// work starts another worker if there may be one.
func (r *Runner[T]) work() {
	if r.stats.Running < r.workers {
		r.stats.Running++
		r.alive++
		h := &hand[T]{size: 1}
		r.hands = append(r.hands, h)
		go r.worker(h)
	}
}

// worker calls handlers until nothing is due.
func (r *Runner[T]) worker(h *hand[T]) {
	defer r.leave(h) // also when a handler ends the goroutine by runtime.Goexit
	for r.fill(h) {
		for !r.over.Load() {
			v, ok := h.pop()
			if !ok {
				break
			}
			r.call(v)
		}
	}
}

// fill takes what is due from the core, or else out of another's hand, and sees
// to what is left. It reports whether there was anything.
func (r *Runner[T]) fill(h *hand[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	now := r.now()
	if h.n > 0 && now.Sub(h.last) <= time.Duration(h.n)*handQuick {
		h.size = min(2*h.size, handMost)
	} else {
		h.size = 1
	}
	n := 0
	for n < h.size {
		due, v, ok := r.core.Poll(now)
		if !ok {
			break
		}
		r.fired(now.Sub(due))
		h.vals[n] = v
		n++
	}
	h.n, h.last = int32(n), now
	h.next.Store(0)
	if n == 0 {
		n = r.steal(h)
	}
	next, pending := r.core.Next()
	if pending && next.After(now) {
		r.arm(next)
		pending = false
	}
	if pending || n > 1 || n > 0 && slices.ContainsFunc(r.hands, func(o *hand[T]) bool { return o.dead && o.left() }) {
		r.work()
	}
	return n > 0
}

// steal takes one out of another's hand.
func (r *Runner[T]) steal(h *hand[T]) int {
	for _, o := range r.hands {
		if o == h {
			continue
		}
		if v, ok := o.pop(); ok {
			h.vals[0], h.n = v, 1
			return 1
		}
	}
	return 0
}

func (r *Runner[T]) fired(late time.Duration) {
	r.stats.Fired++
	r.stats.Late = late
	r.stats.LateMax = max(r.stats.LateMax, late)
	r.stats.LateSum += late
}

// leave ends a worker. What it has not begun is left to the others.
func (r *Runner[T]) leave(h *hand[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Running--
	h.dead = true
	r.hands = slices.DeleteFunc(r.hands, func(o *hand[T]) bool { return o.dead && !o.left() })
	if !r.closed && slices.ContainsFunc(r.hands, (*hand[T]).left) {
		r.work() // it was refused while this one was about to end
	}
	r.poke()
	r.ended()
}

func (r *Runner[T]) call(v T) {
	defer func() {
		if p := recover(); p != nil {
			r.mu.Lock()
			r.stats.Panics++
			r.mu.Unlock()
			r.onPanic(p, debug.Stack())
		}
	}()
	r.handle(v)
}
