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

// hand is what a worker has borrowed from the core. As long as its handlers are
// quick a worker takes more and more at once, for the Runner's lock costs more
// than they do. What it has not begun can still be taken out of its hand: by
// other workers, should one of its handlers be slow, by Cancel, Reset and Close.
//
// All but the slots' state and lateness is written under the Runner's lock, and
// by the hand's worker alone.
type hand[T any] struct {
	slots [handMost]held[T]
	n     int       // slots in use
	size  int       // how many to take
	last  time.Time // when it was filled
	dead  bool      // its worker has ended
}

// held is an entry in a hand.
type held[T any] struct {
	Timer[T]
	state atomic.Uint32
	late  time.Duration // at the start of the handler, once begun; written by the worker
}

// The states of a slot: waiting becomes one of the others, by whoever is first.
const (
	waiting = iota
	begun
	taken
)

// take takes the entry out of the hand, without the handle's being stale, or
// returns false when it is not there any more.
func (s *held[T]) take() bool { return s.state.CompareAndSwap(waiting, taken) }

func (h *hand[T]) left() bool {
	for i := range h.n {
		if h.slots[i].state.Load() == waiting {
			return true
		}
	}
	return false
}

// inHand finds an entry that is in a hand, or was there until its handler began.
func (r *Runner[T]) inHand(handle Handle) *held[T] {
	if len(r.hands) == 0 || r.lender == nil || !r.lender.lent(handle) {
		return nil
	}
	for _, h := range r.hands {
		for i := range h.n {
			if s := &h.slots[i]; s.Handle == handle && s.state.Load() != taken {
				return s
			}
		}
	}
	return nil
}

// work starts another worker if there may be one.
func (r *Runner[T]) work() {
	if r.stats.Running < r.workers {
		r.start(&hand[T]{size: 1})
	}
}

// start starts a worker, which begins with what is in h.
func (r *Runner[T]) start(h *hand[T]) {
	r.stats.Running++
	r.alive++
	r.hands = append(r.hands, h)
	go r.worker(h)
}

// worker calls handlers until nothing is due.
func (r *Runner[T]) worker(h *hand[T]) {
	defer r.leave(h) // also when a handler ends the goroutine by runtime.Goexit
	for more := h.n > 0 || r.fill(h); more; more = r.fill(h) {
		for i := range h.n {
			if s := &h.slots[i]; r.begin(s) {
				r.call(s.Timer)
			}
		}
	}
}

// begin reports whether the handler of an entry in a hand is to be called.
func (r *Runner[T]) begin(s *held[T]) bool {
	if r.lender == nil {
		return true // it has begun
	}
	s.late = r.now().Sub(s.Due)
	return s.state.CompareAndSwap(waiting, begun)
}

// fill takes what is due from the core, or else out of another's hand, and sees
// to what is left. It reports whether there was anything.
func (r *Runner[T]) fill(h *hand[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := h.n
	r.empty(h)
	if r.closed {
		return false
	}
	now := r.now()
	if had > 0 && now.Sub(h.last) <= time.Duration(had)*handQuick {
		h.size = min(2*h.size, handMost)
	} else {
		h.size = 1
	}
	if !r.borrow(h, now) {
		r.steal(h)
	}
	next, pending := r.core.Next()
	if pending && next.After(now) {
		r.arm(next)
		pending = false
	}
	if pending || h.n > 1 || h.n > 0 && slices.ContainsFunc(r.hands, func(o *hand[T]) bool { return o.dead && o.left() }) {
		r.work()
	}
	return h.n > 0
}

// borrow takes what is due from the core, and reports whether anything is.
func (r *Runner[T]) borrow(h *hand[T], now time.Time) bool {
	h.last = now
	for h.n < h.size {
		s := &h.slots[h.n]
		var ok bool
		if r.lender == nil {
			// What has left such a core could not be put back: it begins at once.
			h.size = 1
			s.Timer, ok = r.core.Poll(now)
			s.late = now.Sub(s.Due)
			s.state.Store(begun)
		} else {
			s.Timer, ok = r.lender.lend(now)
			s.state.Store(waiting)
		}
		if !ok {
			break
		}
		h.n++
	}
	return h.n > 0
}

// steal takes one out of another's hand.
func (r *Runner[T]) steal(h *hand[T]) {
	for _, o := range r.hands {
		for i := range o.n {
			if s := &o.slots[i]; s.take() {
				h.slots[0].Timer = s.Timer
				h.slots[0].state.Store(waiting)
				h.n = 1
				return
			}
		}
	}
}

// empty ends the loan of what has begun.
func (r *Runner[T]) empty(h *hand[T]) {
	for i := range h.n {
		s := &h.slots[i]
		if s.state.Load() == begun {
			r.stats.fired(s.late)
			if r.lender != nil {
				r.core.Cancel(s.Handle)
			}
		}
		s.Timer = Timer[T]{}
	}
	h.n = 0
}

// leave ends a worker. What it has not begun is left to the others.
func (r *Runner[T]) leave(h *hand[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Running--
	h.dead = true
	r.hands = slices.DeleteFunc(r.hands, func(o *hand[T]) bool {
		if !o.dead || o.left() {
			return false
		}
		r.empty(o)
		return true
	})
	if !r.closed && slices.ContainsFunc(r.hands, (*hand[T]).left) {
		r.work() // it was refused while this one was about to end
	}
	r.poke()
	r.ended()
}

func (r *Runner[T]) call(t Timer[T]) {
	defer func() {
		if p := recover(); p != nil {
			r.mu.Lock()
			r.stats.Panics++
			r.mu.Unlock()
			r.onPanic(p, debug.Stack())
		}
	}()
	r.handle(t)
}
