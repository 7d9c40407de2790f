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

// Leaver makes calls that can be abandoned: when a caller's context ends it gets its answer at
// once, even while the call hangs in the operating system, where no context reaches it. The
// zero value is ready to use.
type Leaver struct {
	left atomic.Int64

	mu   sync.Mutex
	none chan struct{} // closed when no abandoned call is under way; nil: nothing waits for it
}

// Left returns how many abandoned calls have not returned.
func (c *Leaver) Left() int { return int(c.left.Load()) }

// Make makes a call and returns its answer, or abandons the call once ctx has been over for
// patience; left reports which. When an abandoned call returns, late gets its results. If
// the context cannot end, the call runs on the caller's goroutine.
func Make[T any](ctx context.Context, c *Leaver, patience time.Duration, late func(T, error), call func() (T, error)) (out T, left bool, err error) {
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
	go func() {
		out, err := call()
		if first.CompareAndSwap(false, true) {
			answered <- answer{out, err}
			return
		}
		late(out, err)
		c.returned()
	}()
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
func (c *Leaver) returned() {
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
func (c *Leaver) Wait(patience time.Duration) {
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
