package rabbit

import (
	"net"
	"runtime"
	"sync"
)

// conn is a connection to a broker. The client writes each message by itself: those that come
// at the same time go in one write. No write waits for a broker that has stopped reading; if
// it is gone, heartbeats tell.
type conn struct {
	net.Conn

	mu      sync.Mutex
	unsent  []byte
	sending bool
	err     error // the client learns of it by its next write
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.unsent = append(c.unsent, p...)
	if !c.sending {
		c.sending = true
		go c.send()
	}
	return len(p), nil
}

// send writes until nothing is left.
func (c *conn) send() {
	runtime.Gosched() // goroutines that are about to write go first
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unsent) > 0 && c.err == nil {
		b := c.unsent
		c.unsent = nil
		c.mu.Unlock()
		_, err := c.Conn.Write(b)
		c.mu.Lock()
		c.err = err
	}
	c.sending = false
}
