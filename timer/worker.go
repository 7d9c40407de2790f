package timer

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// handMost bounds how many entries a worker takes from the core at once.
	handMost = 32
	// handQuick is how long handlers may take on average for their worker to take
	// more at once the next time.
	handQuick = 2 * time.Microsecond
	// handStuck is how long after it was filled a hand counts as stuck: other
	// workers then take what waits in it before they take from the core.
	handStuck = time.Millisecond
)

// hand has the entries that a worker has borrowed from the core. As long as its
// handlers are quick, a worker takes more and more at once, because the Runner's
// lock costs more than they do. An entry that has not begun can still be taken
// out of a hand: by other workers, if a handler is slow, and by Cancel, Reset and
// Close.
//
// The fields are written under the Runner's lock, timers and n by the hand's worker
// alone while it runs. The marks' state and lateness are written without the lock.
type hand[T any] struct {
	timers [handMost]Timer[T]
	marks  [handMost]mark
	n      int       // timers in use
	size   int       // how many to take
	last   time.Time // when it was filled
	at     int       // place in Runner.hands
	full   bool      // is in Runner.full
	dead   bool      // its worker has ended
}

// mark is the state of a timer in a hand.
type mark struct {
	state atomic.Uint32
	late  time.Duration // at the start of the handler, once begun; written by the worker
}

// The states of a timer in a hand. Waiting becomes begun or taken, whichever
// comes first.
const (
	waiting = iota
	begun
	taken
)

// take takes a timer out of the hand, and returns false when it is not there any
// more. The handle stays live.
func (h *hand[T]) take(i int) bool { return h.marks[i].state.CompareAndSwap(waiting, taken) }

// left returns the index of the first timer that waits, or -1.
func (h *hand[T]) left() int {
	for i := range h.n {
		if h.marks[i].state.Load() == waiting {
			return i
		}
	}
	return -1
}

// inHand finds a timer in a hand, whether it waits or its handler has begun; nil:
// it is in none.
func (r *Runner[T]) inHand(handle Handle) (*hand[T], int) {
	if len(r.hands) == 0 || r.lender == nil || !r.lender.lent(handle) {
		return nil, 0
	}
	for _, h := range r.hands {
		for i := range h.n {
			if h.timers[i].Handle == handle && h.marks[i].state.Load() != taken {
				return h, i
			}
		}
	}
	return nil, 0
}

// anyLeft reports whether something waits in a hand. If so, the first of full is
// such a hand.
func (r *Runner[T]) anyLeft() bool {
	for len(r.full) > 0 {
		h := r.full[0]
		if h.left() >= 0 {
			return true
		}
		// Nothing waits in it until it is filled again.
		r.full[0], r.full = nil, r.full[1:]
		if h.full = false; h.dead {
			r.bury(h)
		}
	}
	return false
}

// anyStuck reports whether something waits in a hand with a worker that is slow
// or has ended. It looks at one hand in each call.
func (r *Runner[T]) anyStuck(now time.Time) bool {
	if len(r.full) == 0 {
		return false
	}
	if h := r.full[0]; !h.dead && now.Sub(h.last) <= handStuck {
		r.full[copy(r.full, r.full[1:])] = h // in place: it happens often
		return false
	}
	return r.anyLeft()
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
	h.at = len(r.hands)
	r.hands = append(r.hands, h)
	go r.worker(h)
}

// worker calls handlers until nothing is due.
func (r *Runner[T]) worker(h *hand[T]) {
	defer r.leave(h) // also when a handler ends the goroutine by runtime.Goexit
	for more := h.n > 0 || r.fill(h); more; more = r.fill(h) {
		for i := range h.n {
			if r.begin(h, i) {
				r.call(h.timers[i])
			}
		}
	}
}

// begin reports whether to call the handler of a timer in a hand. Since the hand
// was filled, the timer may have been taken out, or the clock set back.
func (r *Runner[T]) begin(h *hand[T], i int) bool {
	if r.lender == nil {
		return true // it has begun
	}
	m := &h.marks[i]
	late := r.now().Sub(h.timers[i].Due)
	if late < 0 {
		return false
	}
	m.late = late
	return m.state.CompareAndSwap(waiting, begun)
}

// fill takes due entries from the core, or else one from another worker's hand.
// If more are left, it starts another worker. It reports whether there was
// anything.
func (r *Runner[T]) fill(h *hand[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := h.n
	r.empty(h)
	// Timers from before that are not overwritten must not be retained.
	defer func() { clear(h.timers[h.n:max(h.n, had)]) }()
	if r.closed {
		return false
	}
	now := r.now()
	if had > 0 && now.Sub(h.last) <= time.Duration(had)*handQuick {
		h.size = min(2*h.size, handMost)
	} else {
		h.size = 1
	}
	if r.anyStuck(now) || !r.borrow(h, now) {
		r.steal(h)
	}
	next, pending := r.core.Next()
	if pending && next.After(now) {
		r.arm(next)
		pending = false
	}
	if pending || h.n > 1 || h.n > 0 && r.anyLeft() {
		r.work()
	}
	return h.n > 0
}

// borrow takes due entries from the core, and reports whether there are any.
func (r *Runner[T]) borrow(h *hand[T], now time.Time) bool {
	h.last = now
	if r.lender == nil {
		// An entry that has left such a core cannot be put back, so it begins at once.
		h.size = 1
		t, ok := r.core.Poll(now)
		if !ok {
			return false
		}
		h.n, h.timers[0] = 1, t
		h.marks[0].late = now.Sub(t.Due)
		h.marks[0].state.Store(begun)
		return true
	}
	h.n = r.lender.lend(now, h.timers[:h.size])
	for i := range h.n {
		h.marks[i] = mark{}
	}
	if h.n > 1 && !h.full {
		h.full = true
		r.full = append(r.full, h)
	}
	return h.n > 0
}

// steal takes one timer out of another worker's hand, if one waits there.
func (r *Runner[T]) steal(h *hand[T]) {
	for r.anyLeft() {
		o := r.full[0]
		if i := o.left(); i >= 0 && o.take(i) {
			h.timers[0], h.marks[0] = o.timers[i], mark{}
			h.n = 1
			return
		}
	}
}

// empty ends the loan of the timers that have begun, and returns those that have
// not to the core.
func (r *Runner[T]) empty(h *hand[T]) {
	for i := range h.n {
		switch h.marks[i].state.Load() {
		case begun:
			r.stats.fired(h.marks[i].late)
			if r.lender != nil {
				r.lender.repaid(h.timers[i].Handle)
			}
		case waiting:
			h.take(i)
			r.core.Reset(h.timers[i].Handle, h.timers[i].Due)
		}
	}
	h.n = 0
}

// leave ends a worker. It leaves the timers that have not begun to other workers.
func (r *Runner[T]) leave(h *hand[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Running--
	if h.dead = h.left() >= 0; !h.dead {
		r.bury(h)
	}
	if r.anyLeft() && !r.closed {
		r.work() // perhaps no worker could start while this one was ending
	}
	r.poke()
	r.ended()
}

// bury empties the hand of a worker that has ended, and removes it from hands.
func (r *Runner[T]) bury(h *hand[T]) {
	r.empty(h)
	clear(h.timers[:])
	last := len(r.hands) - 1
	r.hands[h.at] = r.hands[last]
	r.hands[h.at].at = h.at
	r.hands[last] = nil
	r.hands = r.hands[:last]
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
