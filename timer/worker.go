package timer

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// handMost is how many entries a worker takes from the core at once, at most.
	handMost = 32
	// handQuick is how long a handler may take on average for its worker to take
	// more at once the next time.
	handQuick = 2 * time.Microsecond
	// handStuck is how long a hand may lie before what waits in it goes first,
	// before what came due later.
	handStuck = time.Millisecond
)

// hand is what a worker has borrowed from the core. As long as its handlers are
// quick a worker takes more and more at once, for the Runner's lock costs more
// than they do. What it has not begun can still be taken out of its hand: by
// other workers, should one of its handlers be slow, by Cancel, Reset and Close.
//
// All but the marks' state and lateness is written under the Runner's lock, and
// by the hand's worker alone.
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

// mark is what is becoming of a timer in a hand.
type mark struct {
	state atomic.Uint32
	late  time.Duration // at the start of the handler, once begun; written by the worker
}

// The states of a timer in a hand: waiting becomes one of the others, by whoever
// is first.
const (
	waiting = iota
	begun
	taken
)

// take takes a timer out of the hand, without its handle's being stale, or
// returns false when it is not there any more.
func (h *hand[T]) take(i int) bool { return h.marks[i].state.CompareAndSwap(waiting, taken) }

// left is the first timer that waits, or -1.
func (h *hand[T]) left() int {
	for i := range h.n {
		if h.marks[i].state.Load() == waiting {
			return i
		}
	}
	return -1
}

// inHand finds a timer that is in a hand, or was there until its handler began.
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

// anyLeft says whether something waits in a hand, and leaves the hand where it
// does at the front.
func (r *Runner[T]) anyLeft() bool {
	for len(r.full) > 0 {
		h := r.full[0]
		if h.left() >= 0 {
			return true
		}
		// Until it is filled again nothing will wait there.
		r.full[0], r.full = nil, r.full[1:]
		if h.full = false; h.dead {
			r.bury(h)
		}
	}
	return false
}

// anyStuck says whether something waits in a hand whose worker is slow or has
// ended. It looks at one hand after another, one a call.
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

// begin reports whether the handler of a timer in a hand is to be called. Since
// the hand was filled the timer may have been taken out, and the clock set back.
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

// fill takes what is due from the core, or else out of another's hand, and sees
// to what is left. It reports whether there was anything.
func (r *Runner[T]) fill(h *hand[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := h.n
	r.empty(h)
	// What is not overwritten must not be kept.
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

// borrow takes what is due from the core, and reports whether anything is.
func (r *Runner[T]) borrow(h *hand[T], now time.Time) bool {
	h.last = now
	if r.lender == nil {
		// What has left such a core could not be put back: it begins at once.
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

// steal takes one out of another's hand.
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

// empty ends the loan of what has begun, and gives back what was not to begin.
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

// leave ends a worker. What it has not begun is left to the others.
func (r *Runner[T]) leave(h *hand[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Running--
	if h.dead = h.left() >= 0; !h.dead {
		r.bury(h)
	}
	if r.anyLeft() && !r.closed {
		r.work() // it was refused while this one was about to end
	}
	r.poke()
	r.ended()
}

// bury takes the hand of a worker that has ended out of the list.
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
