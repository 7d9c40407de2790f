package timer

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"
)

// RunnerConfig sets up a Runner. A nil config, and every zero field, means the
// default.
type RunnerConfig struct {
	// Workers bounds how many handlers run at once. Default: 4 for each
	// processor that Go may use, at least 16.
	Workers int
	// OnPanic gets the value that a handler panicked with, and its stack, on the
	// goroutine of the handler. Default: an error to slog's default logger.
	OnPanic func(value any, stack []byte)
	// Now is the wall clock. Default: time.Now.
	Now func() time.Time
}

// RunnerStats has the numbers of a Runner.
type RunnerStats struct {
	Pending int           // not yet handed over, due or not
	Running int           // goroutines of the pool
	Fired   uint64        // handed to a handler
	Panics  uint64        // handlers that panicked
	Wakes   uint64        // how often the runner woke up
	Late    time.Duration // lateness of the last one handed over: start of its handler minus its due time
	LateMax time.Duration // the greatest lateness
	LateSum time.Duration // the sum of all, at most 292 years; divided by Fired it is the mean
}

// Runner drives a [Core] in real time. One goroutine sleeps until the next due
// time. Handlers run on a pool of goroutines that start when there is work and
// end when there is none. So a slow handler does not delay the sleeping
// goroutine, nor other handlers while workers are free. Entries that no worker is
// free for can still be cancelled and reset.
//
// With nothing pending a Runner does not wake. Otherwise it wakes when something
// is due, and each second to see whether the wall clock has stepped: after a step
// forward, entries may be due at once; after one backward, they wait. Over a Ring
// it also wakes when the hand comes to a slot with a task in it, once a turn for
// each such slot.
//
// All methods may be called by many goroutines at once, even by handlers; but see
// Close.
type Runner[T any] struct {
	core    Core[T]
	lender  lender[T] // core, if it can lend
	handle  func(Timer[T])
	workers int
	onPanic func(any, []byte)
	now     func() time.Time

	mu      sync.Mutex
	armed   time.Time // the runner sleeps until then; zero: until woken
	closed  bool
	stats   RunnerStats
	wake    chan struct{}
	stopped chan struct{} // closed when the last goroutine ends after Close
	alive   int           // goroutines: the one that sleeps, and the workers
	hands   []*hand[T]
	full    []*hand[T] // hands in which something may wait behind a handler
}

// NewRunner starts a Runner that calls handle for each due entry of core. The
// Handle of that Timer is stale. The core belongs to the Runner until Close has
// returned nil. NewRunner panics when core or handle is nil.
func NewRunner[T any](core Core[T], handle func(Timer[T]), config *RunnerConfig) *Runner[T] {
	if core == nil || handle == nil {
		panic("timer: a Runner needs a core and a handler")
	}
	core.Len() // a nil pointer panics here, not in a goroutine of the Runner
	r := &Runner[T]{
		core: core, handle: handle,
		workers: max(16, 4*runtime.GOMAXPROCS(0)),
		onPanic: logPanic,
		now:     time.Now,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		alive:   1,
	}
	if config != nil {
		if config.Workers > 0 {
			r.workers = config.Workers
		}
		if config.OnPanic != nil {
			r.onPanic = config.OnPanic
		}
		if config.Now != nil {
			r.now = config.Now
		}
	}
	r.lender, _ = core.(lender[T])
	go r.sleep()
	return r
}

func logPanic(value any, stack []byte) {
	slog.Error("timer: a handler panicked", "panic", value, "stack", string(stack))
}

// Schedule lets v be handled at due. After Close it adds nothing and returns the
// zero Handle.
func (r *Runner[T]) Schedule(due time.Time, v T) Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0
	}
	h := r.core.Schedule(due, v)
	r.arm(due)
	return h
}

// After lets v be handled after d. After Close it adds nothing and returns the
// zero Handle.
func (r *Runner[T]) After(d time.Duration, v T) Handle { return r.Schedule(r.now().Add(d), v) }

// Cancel removes an entry. True means that no handler is called for the entry.
// False means that its handler was called already, or that the entry was
// cancelled before. Cancel works after Close too.
func (r *Runner[T]) Cancel(h Handle) (v T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in, i := r.inHand(h); in != nil && !in.take(i) {
		return v, false
	}
	return r.core.Cancel(h)
}

// Reset moves an entry to another due time. False means that its handler was
// called already, that the entry was cancelled before, or that the Runner is
// closed. Moving it to a later time wakes nobody.
func (r *Runner[T]) Reset(h Handle, due time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if in, i := r.inHand(h); in != nil && !in.take(i) {
		return false
	}
	if !r.core.Reset(h, due) {
		return false
	}
	r.arm(due)
	return true
}

// Due returns the due time of an entry. False means that its handler was called
// already, or that the entry was cancelled.
func (r *Runner[T]) Due(h Handle) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in, i := r.inHand(h); in != nil {
		return in.timers[i].Due, in.marks[i].state.Load() == waiting
	}
	return r.core.Due(h)
}

// Stats returns the numbers of the Runner so far.
func (r *Runner[T]) Stats() RunnerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Pending = r.core.Len()
	for _, h := range r.hands {
		for i := range h.n {
			switch m := &h.marks[i]; m.state.Load() {
			case waiting:
				s.Pending++
			case begun:
				s.fired(m.late)
			}
		}
	}
	return s
}

func (s *RunnerStats) fired(late time.Duration) {
	s.Fired++
	s.Late = late
	s.LateMax = max(s.LateMax, late)
	if late > math.MaxInt64-s.LateSum {
		s.LateSum = math.MaxInt64
		return
	}
	s.LateSum += late
}

// Close stops the Runner: no handler is called any more, and pending entries, due
// or not, stay pending. It waits for the running handlers; if ctx ends first, it
// returns the error of ctx, and a later Close waits again. Once Close has
// returned nil, the core is the caller's again and may be drained. A handler may
// call Close only with a ctx that ends, since it would wait for itself.
func (r *Runner[T]) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		for _, h := range r.hands {
			for i := range h.n {
				if h.take(i) {
					r.core.Reset(h.timers[i].Handle, h.timers[i].Due)
				}
			}
		}
		r.poke()
	}
	r.mu.Unlock()
	select {
	case <-r.stopped:
		return nil
	default:
	}
	select {
	case <-r.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arm wakes the sleeping goroutine if due is before the time until which it sleeps.
func (r *Runner[T]) arm(due time.Time) {
	if r.armed.IsZero() || due.Before(r.armed) {
		r.poke()
	}
}

func (r *Runner[T]) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// sleep is the goroutine that sleeps until something is due, and then starts a
// worker.
func (r *Runner[T]) sleep() {
	defer r.end()
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return
		}
		now := r.now()
		next, pending := r.core.Next()
		if pending && !next.After(now) && r.stats.Running < r.workers {
			// Perhaps only the hand of a Ring has to move: find out first.
			if h := (&hand[T]{size: 1}); r.borrow(h, now) {
				r.start(h)
			}
			next, pending = r.core.Next()
		}
		r.armed = time.Time{}
		switch {
		case !pending:
			// Until woken.
		case !next.After(now):
			// Until woken by the worker that takes the last of what is due, or
			// that ends.
			r.work()
		default:
			r.armed = next
			timer.Reset(min(next.Sub(now), clockCheck))
			due = timer.C
		}
		r.mu.Unlock()
		select {
		case <-due:
		case <-r.wake:
		}
		r.mu.Lock()
		r.stats.Wakes++
		r.mu.Unlock()
	}
}

func (r *Runner[T]) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended()
}

func (r *Runner[T]) ended() {
	if r.alive--; r.alive == 0 {
		close(r.stopped)
	}
}
