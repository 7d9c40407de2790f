// Package coalesce makes one call of many that come at the same time.
package coalesce

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Coalescer makes one call of many that come at the same time. While a call is under
// way others gather, and the next call takes them all; nobody waits for company.
// A further lane opens, and goes on, when enough have gathered to be worth a call of their own,
// or when the call under way is slow: few large calls cost less than many small ones, but
// the next ones are made ready meanwhile, and one that hangs must not hold up all.
// A call runs on no caller's context but a Gathered one, and each item gets its own answer,
// which may be engine.ErrBusy. Its
// goroutines live only while there is work.
type Coalescer[In, Out any] struct {
	call  func(context.Context, []In) ([]Out, error)
	most  int           // items in a call
	lanes int           // calls at a time
	worth int           // items that open a further lane
	size  func(*In) int // bytes; nil: small
	items sync.Pool     // of *coalesced[In, Out], for those to come
	rooms sync.Pool     // of *[]In, for the inputs of calls to come

	mu      sync.Mutex
	waiting []*coalesced[In, Out]
	left    int // of those who wait, whose callers do not
	running int // lanes
	slow    int // lanes whose calls are slow
	closed  bool
	done    sync.WaitGroup
}

type coalesced[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{} // holds one token when out and err are set

	// Guarded by Coalescer.mu:
	taken bool // a call has it
	left  bool // its caller does not wait; never both
}

// Timeout bounds a call that no caller's context bounds.
const Timeout = 30 * time.Second

// ErrOverdue is the failure of a call that took longer than that.
var ErrOverdue = fmt.Errorf("%w: it has not answered within %s", engine.ErrUnavailable, Timeout)

// Overdue is ErrOverdue in the place of the deadline with which a call ended. What the engine says of
// the outcome is kept.
func Overdue(err error) error {
	var e *engine.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return ErrOverdue
	}
	with := *e
	with.Err = ErrOverdue
	return &with
}

// Withdrawn is the error of an item whose caller left before a call took it: nothing has come of it, nor
// will. It wraps that of his context.
type Withdrawn struct{ Err error }

// Error returns that of the context.
func (w *Withdrawn) Error() string { return w.Err.Error() }

// Unwrap returns the error of the context.
func (w *Withdrawn) Unwrap() error { return w.Err }

// bytesMost bounds what gathers in one call, so that large items do not hold up
// small ones for long.
const bytesMost = 1 << 20

// New returns a Coalescer that puts at most so many items in a call, and has so many
// calls under way; size tells the bytes of an item, nil: they are small.
func New[In, Out any](most, lanes int, size func(*In) int, call func(context.Context, []In) ([]Out, error)) *Coalescer[In, Out] {
	return &Coalescer[In, Out]{call: call, most: most, lanes: max(1, lanes), worth: min(most, laneWorth/max(1, lanes-1)), size: size}
}

// Do hands in one item and returns its answer. When ctx ends first, and a call has the item, it is
// still on its way and its outcome unknown; else it is a *Withdrawn.
func (c *Coalescer[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	it, _ := c.items.Get().(*coalesced[In, Out])
	if it == nil {
		it = &coalesced[In, Out]{done: make(chan struct{}, 1)}
	}
	it.in = in
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return out, engine.ErrClosed
	}
	c.waiting = append(c.waiting, it)
	c.widen()
	c.mu.Unlock()
	select {
	case <-it.done:
		out, err = it.out, it.err
		*it = coalesced[In, Out]{done: it.done}
		c.items.Put(it)
		return out, err
	case <-ctx.Done():
		if c.withdraw(it) {
			return out, &Withdrawn{ctx.Err()}
		}
		return out, ctx.Err()
	}
}

// withdraw takes an item back that no call has taken, and reports whether that is so.
func (c *Coalescer[In, Out]) withdraw(it *coalesced[In, Out]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it.taken {
		return false
	}
	var none In // what is still in line does not hold it
	it.in, it.left = none, true
	if c.left++; c.left > len(c.waiting)/2 {
		c.tidy()
	}
	return true
}

// tidy forgets those whose callers left. Called with c.mu held.
func (c *Coalescer[In, Out]) tidy() {
	if c.left > 0 {
		c.waiting = slices.DeleteFunc(c.waiting, func(it *coalesced[In, Out]) bool { return it.left })
		c.left = 0
	}
}

// laneWorth is how many are worth a call beside the one under way, and further lanes
// share it: who has more of them wants its calls to follow each other closely. It is less
// than the half of 64, so that two lanes find enough where one has taken somewhat more.
const laneWorth = 24

// slowLane is after how long a call no longer keeps others waiting while there is
// another lane.
const slowLane = 10 * time.Millisecond

// widen opens a lane where that is due. Called with c.mu held.
func (c *Coalescer[In, Out]) widen() {
	if len(c.waiting) == 0 || c.running == c.lanes {
		return
	}
	if c.running == c.slow || len(c.waiting) >= c.worth {
		c.running++
		c.done.Go(c.run)
	}
}

// lane is what is known of one lane's call. Guarded by Coalescer.mu.
type lane struct {
	call uint64 // which one it is
	slow bool
}

// slowed notes that a call is slow, unless it has ended, and looks after those who
// came while it was young.
func (c *Coalescer[In, Out]) slowed(l *lane, call uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.call == call {
		l.slow = true
		c.slow++
		c.widen()
	}
}

func (c *Coalescer[In, Out]) run() {
	var l lane
	for {
		// Who was just answered, or can call now, should: it makes the calls fewer.
		runtime.Gosched()
		c.mu.Lock()
		l.call++
		if l.slow {
			l.slow = false
			c.slow--
		}
		c.tidy()
		n := c.fill()
		if n == 0 || n == len(c.waiting) && n < c.worth && c.running-1 > c.slow {
			c.running-- // what few have come goes with the next call of a lane under way
			c.mu.Unlock()
			return
		}
		items := c.waiting[:n:n]
		for _, it := range items {
			it.taken = true
		}
		c.waiting = c.waiting[n:]
		if len(c.waiting) == 0 {
			c.waiting = nil
		}
		call := l.call
		c.mu.Unlock()
		if c.lanes == 1 {
			c.serve(items)
			continue
		}
		slow := time.AfterFunc(slowLane, func() { c.slowed(&l, call) })
		c.serve(items)
		slow.Stop()
	}
}

// fill returns how many of those who wait go into the next call.
func (c *Coalescer[In, Out]) fill() int {
	n := min(len(c.waiting), c.most)
	if c.size == nil {
		return n
	}
	bytes := 0
	for i, it := range c.waiting[:n] {
		if bytes += c.size(&it.in); i > 0 && bytes > bytesMost {
			return i
		}
	}
	return n
}

// serve makes one call. Its room for inputs is used again, unless an engine that was left may still
// look at it.
func (c *Coalescer[In, Out]) serve(items []*coalesced[In, Out]) {
	room, _ := c.rooms.Get().(*[]In)
	if room == nil {
		room = new([]In)
	}
	ins := (*room)[:0]
	for _, it := range items {
		ins = append(ins, it.in)
	}
	ctx, cancel := context.WithTimeout(engine.Gathered(context.Background()), Timeout)
	outs, err := c.call(ctx, ins)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = Overdue(err) // no caller has set this deadline
	}
	if ctx.Err() == nil {
		clear(ins)
		*room = ins
		c.rooms.Put(room)
	}
	cancel()
	for i, it := range items {
		if err != nil {
			it.err = err
		} else {
			it.out = outs[i]
		}
		it.done <- struct{}{}
	}
}

// Wait takes no more items, refuses those that no call has taken, and returns when nothing is under way: where
// calls are slow those would be waited for one after the other.
func (c *Coalescer[In, Out]) Wait() {
	c.mu.Lock()
	c.closed = true
	rest := c.waiting
	c.waiting, c.left = nil, 0
	for _, it := range rest {
		it.taken, it.err = true, engine.ErrClosed
	}
	c.mu.Unlock()
	for _, it := range rest {
		it.done <- struct{}{}
	}
	c.done.Wait()
}
