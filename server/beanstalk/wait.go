package beanstalk

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// mostAhead bounds what is read while a connection waits.
const mostAhead = 16 << 10

// errFull says that nothing more can be read ahead.
var errFull = errors.New("the client has sent much behind its wait")

// fullWait is how often a waiting connection with a full buffer checks whether its client has gone.
const fullWait = 2 * time.Second

// readAfter is how long a wait lasts before the connection reads on. Many waits are shorter, and
// so need no goroutine.
const readAfter = 5 * time.Millisecond

// ahead is what reads on while a connection waits for a job. Its goroutine owns the input until
// join. When the wait ends, it may still be blocked in a read, which then is the connection's
// next one.
type ahead struct {
	started bool        // there is a goroutine to join; belongs to the connection's goroutine
	timer   *time.Timer // starts it
	ended   chan error  // of the goroutine: its last error

	ctx    context.Context // of the waits until one is ended early
	cancel context.CancelFunc

	mu    sync.Mutex
	reads bool  // the goroutine goes on
	waits bool  // there is a wait
	err   error // what has ended the wait
	left  int   // bytes in the input
}

func (a *ahead) init(readOn func()) {
	a.ended = make(chan error, 1)
	a.timer = time.AfterFunc(time.Hour, readOn)
	a.timer.Stop()
}

// await calls wait with a context that ends when the client goes. It returns io.EOF when the
// client has closed its side, and another error when the connection is broken or stopping.
// Without readOn nothing is read meanwhile.
func (c *conn) await(readOn bool, wait func(context.Context)) error {
	a := &c.ahead
	if a.ctx == nil || a.ctx.Err() != nil {
		a.ctx, a.cancel = context.WithCancel(c.ctx)
	}
	if !a.begin() {
		if err := a.join(); err != nil {
			return err
		}
		a.begin()
	}
	starts := readOn && !a.started
	if !a.started {
		a.left, a.reads = c.in.buffered(), readOn
	}
	if starts {
		a.timer.Reset(readAfter)
	}
	if c.stopping.Load() {
		a.cancel()
	}
	wait(a.ctx)
	if starts {
		a.started = !a.timer.Stop()
	}
	a.mu.Lock()
	a.waits = false
	err, left := a.err, a.left
	a.mu.Unlock()
	if a.started && (left > 0 || err != nil) {
		c.wake()
	}
	return err
}

// begin begins a wait. It returns false if the goroutine of the last wait has ended.
func (a *ahead) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started && !a.reads {
		return false
	}
	a.waits, a.err, a.left = true, nil, 0
	return true
}

// wake ends the goroutine's read.
func (c *conn) wake() {
	c.deadline(past)
	_ = c.ahead.join()
	c.deadline(time.Time{})
}

// readAhead reads until the wait is over or there is enough.
func (c *conn) readAhead() {
	a := &c.ahead
	for {
		var n int
		err, p := errFull, c.in.space(maxLine)
		if p != nil {
			n, err = c.nc.Read(p)
		}
		a.mu.Lock()
		c.in.add(n)
		if a.left = c.in.buffered(); a.left >= mostAhead && err == nil {
			err = errFull
		}
		a.reads = err == nil && a.waits
		more := a.reads
		a.mu.Unlock()
		if err != nil {
			a.end(err)
		}
		if !more {
			a.ended <- err
			return
		}
	}
}

// end ends the wait, if there is one; err: why.
func (a *ahead) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits {
		a.err = err
		a.cancel()
	}
}

// join waits for the end of the goroutine. A read that wake has ended is no error.
func (a *ahead) join() error {
	err := <-a.ended
	a.started = false
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errFull) {
		return nil
	}
	return err
}
