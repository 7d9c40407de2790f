// Package leave makes calls that their callers can leave: when a caller's context
// ends he gets his answer there and then, also while the call hangs in the operating
// system, where no context reaches it.
package leave

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Most is how many calls that were left should be under way at a time. Who begins a
// call asks for Left before: else something that hangs fills memory with them.
const Most = 1000

// Calls makes calls, on goroutines that are kept for a while, since the stacks of
// new ones would have to grow each time. The zero value is ready.
type Calls struct {
	left atomic.Int64

	mu     sync.Mutex
	idle   []hand
	timed  bool // trim will come
	closed bool
	none   chan struct{} // closed when no call is left any more; nil: nobody waits for that
}

const (
	idleMost = 16          // goroutines that are kept without work
	idleFor  = time.Second // how long they are kept, at most twice that
)

// hand is a goroutine that makes calls, one after the other.
type hand chan func()

// Left returns how many calls were left and have not returned.
func (c *Calls) Left() int { return int(c.left.Load()) }

// Make makes a call and returns its answer, or leaves it when ctx has been over for
// patience, and reports which. When a call that was left returns, late is called with
// what it returned. A call whose context cannot end is made by the caller himself.
func Make[T any](ctx context.Context, c *Calls, patience time.Duration, late func(T, error), call func() (T, error)) (out T, left bool, err error) {
	if ctx.Done() == nil {
		out, err = call()
		return out, false, err
	}
	type answer struct {
		out T
		err error
	}
	answered := make(chan answer, 1)
	var first atomic.Bool // taken by the answer, or by the caller who leaves
	c.run(func() {
		out, err := call()
		if first.CompareAndSwap(false, true) {
			answered <- answer{out, err}
			return
		}
		late(out, err)
		c.returned()
	})
	select {
	case a := <-answered:
		return a.out, false, a.err
	case <-ctx.Done():
	}
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case a := <-answered:
			return a.out, false, a.err
		case <-timer.C:
		}
	}
	c.left.Add(1)
	if first.CompareAndSwap(false, true) {
		return out, true, ctx.Err()
	}
	c.returned()
	a := <-answered
	return a.out, false, a.err
}

// returned notes that a call that was left is over.
func (c *Calls) returned() {
	if c.left.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Wait waits for the calls that were left, and for what late does with what they return,
// as long as patience lasts.
func (c *Calls) Wait(patience time.Duration) {
	c.mu.Lock()
	if c.Left() == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

// run has a hand call fn.
func (c *Calls) run(fn func()) {
	c.mu.Lock()
	n := len(c.idle)
	if n == 0 {
		c.mu.Unlock()
		go c.work(make(hand, 1), fn)
		return
	}
	h := c.idle[n-1]
	c.idle = c.idle[:n-1]
	c.mu.Unlock()
	h <- fn
}

func (c *Calls) work(h hand, fn func()) {
	for ok := true; ok; fn, ok = <-h {
		fn()
		fn = nil
		if !c.keep(h) {
			return
		}
	}
}

// keep puts a hand among the idle ones, unless there are enough.
func (c *Calls) keep(h hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle) >= idleMost {
		return false
	}
	c.idle = append(c.idle, h)
	if !c.timed {
		c.timed = true
		time.AfterFunc(idleFor, c.trim)
	}
	return true
}

// trim ends the idle hands.
func (c *Calls) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	for _, h := range c.idle {
		close(h)
	}
	clear(c.idle)
	c.idle = c.idle[:0]
}

// Close ends the goroutines that have no work, and from now on each with its call.
// It waits for none.
func (c *Calls) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.trim()
}
