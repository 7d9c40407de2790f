package redisengine

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connections are the connections of a client that Open made.
type connections struct {
	dials atomic.Int64

	mu    sync.Mutex
	open  map[*connection]struct{}
	ended time.Time // when hangUp last closed them
}

// connection is one of them.
type connection struct {
	net.Conn
	of *connections
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// dial makes a connection, as rueidis.ClientOption.DialCtxFn.
func (c *connections) dial(ctx context.Context, addr string, d *net.Dialer, secure *tls.Config) (conn net.Conn, err error) {
	c.dials.Add(1)
	network := "tcp"
	if strings.HasPrefix(addr, "/") { // a socket
		network = "unix"
	}
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, network, addr)
	} else {
		conn, err = d.DialContext(ctx, network, addr)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	made := &connection{conn, c}
	c.open[made] = struct{}{}
	return made, nil
}

// hangUp closes all connections, so that host names are resolved again. It does nothing if
// it just did so, or if c is nil.
func (c *connections) hangUp() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.ended) < retryPauseMax {
		return
	}
	c.ended = time.Now()
	for made := range c.open {
		_ = made.Conn.Close() // the client reconnects
	}
	clear(c.open)
}
