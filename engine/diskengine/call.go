package diskengine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/leave"
)

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when closed and the last call has ended

	made leave.Calls
}

// begin admits a call unless the engine is closed.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.closed {
		close(c.idle)
	}
}

// close admits no more calls, and reports whether it is the first to do so.
func (c *calls) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	if c.n == 0 {
		close(c.idle)
	}
	return true
}

// enter begins a call; leave ends it.
func (e *Engine) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &engine.Error{Op: op, Err: err}
	}
	if n := e.calls.made.Left(); n >= leave.Most {
		return &engine.Error{Op: op, Err: engine.ErrUnavailable,
			Hint: fmt.Sprintf("%d calls have waited for so long that their callers left%s", n, e.slowest())}
	}
	if !e.calls.begin() {
		return &engine.Error{Op: op, Err: engine.ErrClosed}
	}
	if err := e.store.failed(); err != nil {
		e.calls.end()
		return broken(op, err)
	}
	return nil
}

func (e *Engine) leave() { e.calls.end() }

// do runs fn as one call: what fn answers rests on what p collects, and is
// answered when that is durable. When ctx ends first do returns, and the call goes
// on without its caller: fn must use nothing that is the caller's, and who calls do
// nothing that fn sets.
func (e *Engine) do(ctx context.Context, op string, fn func(now clock, p *pending) error) error {
	return e.doOrElse(ctx, op, nil, fn)
}

// doOrElse is do with a function that is called when the call has succeeded after
// its caller had left.
func (e *Engine) doOrElse(ctx context.Context, op string, late func(), fn func(now clock, p *pending) error) error {
	if err := e.enter(ctx, op); err != nil {
		return err
	}
	if ctx.Done() == nil {
		defer e.leave()
		return e.carryOut(op, fn)
	}
	_, left, err := leave.Make(ctx, &e.calls.made, 0, func(_ struct{}, err error) {
		defer e.leave()
		if err == nil && late != nil {
			late()
		}
	}, func() (struct{}, error) { return struct{}{}, e.carryOut(op, fn) })
	if left {
		return &engine.Error{Op: op, Err: err,
			Hint: "the outcome is unknown, and repeating it with the same key is safe" + e.slowest()}
	}
	e.leave()
	return err
}

// carryOut runs fn and waits for what its answer rests on.
func (e *Engine) carryOut(op string, fn func(now clock, p *pending) error) error {
	p := pending{store: e.store}
	err := fn(e.now(), &p)
	if werr := p.wait(); err == nil {
		err = werr
	}
	e.tell(p.hints)
	return e.wrap(op, err)
}

// slowest tells, for a hint, what the disk has not done for a second or more.
func (e *Engine) slowest() string {
	op, ok := e.store.disk.slowest()
	if d := time.Since(op.since); ok && d >= time.Second {
		return fmt.Sprintf("; the disk does not answer: %s %s is under way for %s", op.what, op.name, d.Round(time.Second))
	}
	return ""
}
