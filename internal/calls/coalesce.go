package calls

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

// Coalescer merges the items of concurrent calls into one call. Items gather while a call is
// under way, and the next call takes them all; no item is delayed to gather others. Another
// lane opens when enough items have gathered to be worth a call of their own, or when the
// call under way is slow: few large calls cost less than many small ones, but a call that
// hangs must not hold up the rest. A call runs on a Gathered context, not on a caller's.
// Each item gets its own answer, which may be engine.ErrBusy. Goroutines live only while
// there is work.
type Coalescer[In, Out any] struct {
	call  func(context.Context, []In) ([]Out, error)
	most  int           // items in a call
	size  func(*In) int // bytes; nil: small
	items sync.Pool     // of *coalesced[In, Out], for reuse

	mu      sync.Mutex
	waiting []*coalesced[In, Out]
	left    int // waiting items that their callers have left
	lanes   Lanes
	closed  bool
	done    sync.WaitGroup
}

type coalesced[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{} // holds a token once out and err are set

	// Guarded by Coalescer.mu:
	taken bool // a call has it
	left  bool // its caller has left; never together with taken
}

// Timeout bounds a call that runs on no caller's context, and a single push of any size.
const Timeout = 30 * time.Second

// ErrOverdue is the error of a call that took longer than Timeout.
var ErrOverdue = fmt.Errorf("%w: it has not answered within %s", engine.ErrUnavailable, Timeout)

// overdue returns ErrOverdue in place of the DeadlineExceeded of a call. It keeps the
// engine's hint about the outcome.
func overdue(err error) error {
	var e *engine.Error
	if !errors.As(err, &e) || e.Hint == "" {
		return ErrOverdue
	}
	with := *e
	with.Err = ErrOverdue
	return &with
}

// Withdrawn is the error of an item if the caller left before a call took it: nothing was
// done. It wraps the error of the caller's context.
type Withdrawn struct{ Err error }

// Error returns the text of the context's error.
func (w *Withdrawn) Error() string { return w.Err.Error() }

// Unwrap returns the error of the context.
func (w *Withdrawn) Unwrap() error { return w.Err }

// bytesMost bounds the bytes of a call, so that large items do not hold up small ones for
// long.
const bytesMost = 1 << 20

// MostShared is the most bytes of an item that is worth a shared call: a call for a larger one
// alone costs hardly more, needs no copy of it, and waits for no lane.
const MostShared = bytesMost / 4

// NewCoalescer returns a Coalescer with at most most items in a call and lanes calls under way. size
// returns the bytes of an item; nil: items are small.
func NewCoalescer[In, Out any](most, lanes int, size func(*In) int, call func(context.Context, []In) ([]Out, error)) *Coalescer[In, Out] {
	c := &Coalescer[In, Out]{call: call, most: most, size: size}
	c.items.New = func() any { return &coalesced[In, Out]{done: make(chan struct{}, 1)} }
	c.lanes = Lanes{
		Mu: &c.mu, Most: max(1, lanes), Worth: min(most, laneWorth/max(1, lanes-1)), Slow: slowLane,
		Waiting: func() int { return len(c.waiting) },
		Open:    func() { c.done.Go(c.run) },
	}
	return c
}

// Do adds one item and returns its answer. If ctx ends first, the error is a *Withdrawn
// when no call had taken the item; otherwise the item is still on its way and its outcome
// unknown.
func (c *Coalescer[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	it := c.items.Get().(*coalesced[In, Out])
	it.in = in
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return out, engine.ErrClosed
	}
	c.waiting = append(c.waiting, it)
	c.lanes.Widen()
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

// withdraw takes an item back, and reports false if a call has taken it.
func (c *Coalescer[In, Out]) withdraw(it *coalesced[In, Out]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if it.taken {
		return false
	}
	var none In // the waiting list must not retain it
	it.in, it.left = none, true
	if c.left++; c.left > len(c.waiting)/2 {
		c.tidy()
	}
	return true
}

// tidy removes the items that their callers have left. Called with c.mu held.
func (c *Coalescer[In, Out]) tidy() {
	if c.left > 0 {
		c.waiting = slices.DeleteFunc(c.waiting, func(it *coalesced[In, Out]) bool { return it.left })
		c.left = 0
	}
}

// laneWorth is how many items are worth a call beside the one under way. With more lanes
// than two it is divided among the others, so that calls follow each other closely. It is
// less than half of 64, so that two lanes find enough even if one has taken more than half.
const laneWorth = 24

// slowLane is how long a call may take before other items stop waiting for it, if there is
// another lane.
const slowLane = 10 * time.Millisecond

func (c *Coalescer[In, Out]) run() {
	for {
		// Let callers add items first: it saves calls.
		runtime.Gosched()
		c.mu.Lock()
		c.tidy()
		n := c.fill()
		if n == 0 || n == len(c.waiting) && n < c.lanes.Worth && c.lanes.Spare() {
			c.lanes.Running-- // the few new items go into the next call of another lane
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
		c.mu.Unlock()
		c.lanes.Call(func() { c.serve(items) })
	}
}

// fill returns how many of the waiting items go into the next call.
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

// serve makes one call.
func (c *Coalescer[In, Out]) serve(items []*coalesced[In, Out]) {
	ins := make([]In, len(items))
	for i, it := range items {
		ins[i] = it.in
	}
	ctx, cancel := context.WithTimeout(engine.Gathered(context.Background()), Timeout)
	outs, err := c.call(ctx, ins)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = overdue(err) // not a deadline of any caller
	}
	cancel()
	for i, it := range items {
		if it.err = err; err == nil {
			it.out = outs[i]
		}
		it.done <- struct{}{}
	}
}

// Wait rejects new items and those that no call has taken, since running them could take
// one slow call after the other. It returns when nothing is under way.
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
