package beanstalk

import (
	"context"
	"errors"
	"io"
	"time"
)

// watchAfter is how long a wait lasts before the client is watched. Most waits are shorter, and so
// need no goroutine.
const watchAfter = 5 * time.Millisecond

// watcher notices that the client of a waiting connection hangs up.
type watcher struct {
	timer  *time.Timer     // begins to watch, on a goroutine of its own
	ctx    context.Context // of the waits until the client hangs up
	cancel context.CancelFunc
	hungUp chan bool // what the goroutine has found
}

func (w *watcher) init(c *conn) {
	w.ctx, w.cancel = context.WithCancel(c.open)
	w.hungUp = make(chan bool, 1)
	w.timer = time.AfterFunc(time.Hour, func() { w.hungUp <- c.watchClient() })
	w.timer.Stop()
}

// await calls wait with a context that ends when the client hangs up or the connection is to
// end. It reports whether the client has hung up.
func (c *conn) await(wait func(context.Context)) bool {
	w := &c.watcher
	w.timer.Reset(watchAfter)
	wait(w.ctx)
	if w.timer.Stop() {
		return false
	}
	c.deadline(past) // wakes the goroutine
	hungUp := <-w.hungUp
	c.deadline(time.Time{})
	if hungUp {
		w.ctx, w.cancel = context.WithCancel(c.open)
	}
	return hungUp
}

// watchClient reports whether the client has hung up, and then ends the wait. It waits for that
// until the read deadline. Where the system does not tell, it reads on: then a client that sends
// more commands behind its wait is not watched any longer.
func (c *conn) watchClient() bool {
	gone, ok := awaitHangUp(c.nc)
	if !ok {
		n, err := c.nc.Read(c.in.space(maxLine))
		c.in.add(n)
		gone = errors.Is(err, io.EOF)
	}
	if gone {
		c.watcher.cancel()
	}
	return gone
}
