package diskengine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when closed and the last call has ended

	left atomic.Int64 // under way, and the caller has gone
}

// mostLeft bounds the calls that go on without their caller: while a disk hangs
// they must not fill memory.
const mostLeft = 1000

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
	if n := e.calls.left.Load(); n >= mostLeft {
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
	var first atomic.Bool // taken by the answer, or by the caller who leaves
	answer := make(chan error, 1)
	go func() {
		defer e.leave()
		err := e.carryOut(op, fn)
		if first.CompareAndSwap(false, true) {
			answer <- err
			return
		}
		if err == nil && late != nil {
			late()
		}
		e.calls.left.Add(-1)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	e.calls.left.Add(1)
	if !first.CompareAndSwap(false, true) {
		e.calls.left.Add(-1)
		return <-answer
	}
	return &engine.Error{Op: op, Err: ctx.Err(),
		Hint: "the outcome is unknown, and repeating it with the same key is safe" + e.slowest()}
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

// copied returns messages that stay as they are when their caller has left.
func copied(ctx context.Context, msgs []engine.Message) []engine.Message {
	if ctx.Done() == nil {
		return msgs
	}
	msgs = slices.Clone(msgs)
	size := 0
	for i := range msgs {
		size += len(msgs[i].Body)
	}
	bodies := make([]byte, 0, size)
	for i := range msgs {
		m, from := &msgs[i], len(bodies)
		bodies = append(bodies, m.Body...)
		m.Body = bodies[from:len(bodies):len(bodies)]
		m.Headers, m.Backoff = slices.Clone(m.Headers), slices.Clone(m.Backoff)
	}
	return msgs
}
