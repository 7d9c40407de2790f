package beanstalk

import (
	"context"
	"errors"
	"io"
	"time"
)

// watchAfter is how long a wait lasts before the client is watched. Most are shorter.
const watchAfter = time.Millisecond

// await calls wait with a context that ends when the client hangs up or the connection is to
// end. It reports whether the client has hung up.
func (c *conn) await(wait func(context.Context)) bool {
	ctx, cancel := context.WithCancel(c.open)
	defer cancel()
	hungUp := make(chan bool, 1)
	watch := time.AfterFunc(watchAfter, func() {
		gone := c.watchClient()
		if gone {
			cancel()
		}
		hungUp <- gone
	})
	wait(ctx)
	if watch.Stop() {
		return false
	}
	c.deadline(past) // wakes the goroutine
	defer c.deadline(time.Time{})
	return <-hungUp
}

// watchClient reports whether the client has hung up. It waits for that until the read
// deadline. Where the system does not tell, it reads on: then a client that sends more commands
// behind its wait is not watched any longer.
func (c *conn) watchClient() bool {
	if gone, ok := awaitHangUp(c.nc); ok {
		return gone
	}
	n, err := c.nc.Read(c.in.space(maxLine))
	c.in.add(n)
	return errors.Is(err, io.EOF)
}
