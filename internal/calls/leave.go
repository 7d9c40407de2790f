package calls

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// MaxLeft bounds the abandoned calls under way. Callers check Left before a call; otherwise
// something that hangs would fill memory with calls.
const MaxLeft = 1000

// Pool makes calls that can be abandoned: when a caller's context ends it gets its answer at
// once, even while the call hangs in the operating system, where no context reaches it. The
// calls run on pooled goroutines, because new ones would have to grow their stacks each time. The zero value is ready to use.
type Pool struct {
	left atomic.Int64

	mu     sync.Mutex
	idle   []runner
	timed  bool // a trim is scheduled
	closed bool
	none   chan struct{} // closed when no abandoned call is under way; nil: nothing waits for it
}

const (
	idleMost = 16          // idle goroutines to keep
	idleFor  = time.Second // how long to keep them; up to twice that
)

// runner is a goroutine that makes calls one after the other.
type runner chan func()

// Left returns how many abandoned calls have not returned.
func (c *Pool) Left() int { return int(c.left.Load()) }

// Make makes a call and returns its answer, or abandons the call once ctx has been over for
// patience; left reports which. When an abandoned call returns, late gets its results. If
// the context cannot end, the call runs on the caller's goroutine.
func Make[T any](ctx context.Context, c *Pool, patience time.Duration, late func(T, error), call func() (T, error)) (out T, left bool, err error) {
	if ctx.Done() == nil {
		out, err = call()
		return out, false, err
	}
	type answer struct {
		out T
		err error
	}
	answered := make(chan answer, 1)
	var first atomic.Bool // set by whichever comes first: the answer, or the end of patience
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

// returned notes that an abandoned call has returned.
func (c *Pool) returned() {
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

// Wait waits up to patience for the abandoned calls and their late functions.
func (c *Pool) Wait(patience time.Duration) {
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
	duration.Await(none, patience)
}

// run runs fn on a pooled goroutine.
func (c *Pool) run(fn func()) {
	c.mu.Lock()
	n := len(c.idle)
	if n == 0 {
		c.mu.Unlock()
		go c.work(make(runner, 1), fn)
		return
	}
	h := c.idle[n-1]
	c.idle = c.idle[:n-1]
	c.mu.Unlock()
	h <- fn
}

func (c *Pool) work(h runner, fn func()) {
	for ok := true; ok; fn, ok = <-h {
		fn()
		fn = nil
		if !c.keep(h) {
			return
		}
	}
}

// keep adds a runner to the idle ones, and reports false if there are enough.
func (c *Pool) keep(h runner) bool {
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

// trim ends idle runners.
func (c *Pool) trim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	for _, h := range c.idle {
		close(h)
	}
	clear(c.idle)
	c.idle = c.idle[:0]
}

// Close ends idle goroutines at once and the others after their calls. It does not wait.
func (c *Pool) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.trim()
}
