package server

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection as accepted, below TLS.
type conn struct {
	net.Conn
	l       *connections
	peer    *peer
	waits   atomic.Int64 // since when it waits for its client, in Unix nanoseconds; 0: a request is at work
	cost    atomic.Int64 // bytes of memory, while it waits
	heading atomic.Bool  // it waits for the head of a request
	brief   atomic.Bool  // whether the client leaves does not matter
	surplus bool         // it is one too many: every request gets 503

	unwatched context.Context // for pushes, which do not end with their requests

	mu      sync.Mutex
	writeBy time.Time // when all writing must have ended; zero: as long as the client reads
}

// Read charges for the bytes it reads of a request head. During a brief request only net/http
// reads, in the background, to notice that the client leaves. It gets nothing, which saves a
// system call and two switches of goroutines. Under TLS no request is brief: TLS reads again
// until it gets something.
func (c *conn) Read(p []byte) (n int, err error) {
	if c.brief.Load() {
		return 0, nil
	}
	n, err = c.Conn.Read(p)
	if n > 0 && c.heading.Load() && !c.charge(int64(n)*headCost) {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Write gives the client WriteTimeout to read each stride.
func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		c.mu.Lock()
		by := time.Now().Add(c.l.cfg.WriteTimeout)
		if !c.writeBy.IsZero() && c.writeBy.Before(by) {
			by = c.writeBy
		}
		_ = c.Conn.SetWriteDeadline(by) // if it fails, the write does
		c.mu.Unlock()
		var m int
		m, err = c.Conn.Write(p[n:min(n+stride, len(p))])
		n += m
	}
	return n, err
}

// SetWriteDeadline sets until when all writing must have ended; zero: as long as the client
// reads.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeBy = t; t.IsZero() {
		return nil // Write sets the next
	}
	return c.Conn.SetWriteDeadline(t)
}

// charge adds to the cost of a waiting connection, and closes others if that is too much. It
// reports whether there is room.
func (c *conn) charge(more int64) bool {
	c.cost.Add(more)
	c.peer.cost.Add(more)
	if c.l.cost.Add(more) <= maxWaiting {
		return true
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	for c.l.cost.Load() > maxWaiting {
		if !c.l.evict() {
			return false
		}
	}
	return true
}

// setWaiting notes since when a connection waits for its client: for a request head if head
// is set, else for more of a body. It does nothing if c is nil: another server accepted it.
func (c *conn) setWaiting(since time.Time, head bool) {
	if c == nil {
		return
	}
	c.waits.Store(since.UnixNano())
	c.heading.Store(head)
	if c.cost.CompareAndSwap(0, connCost) {
		c.peer.cost.Add(connCost)
		c.l.cost.Add(connCost)
	}
}

// setBusy notes that the client now waits for the server.
func (c *conn) setBusy() {
	if c == nil {
		return
	}
	c.waits.Store(0)
	c.heading.Store(false)
	if cost := c.cost.Swap(0); cost > 0 {
		c.peer.cost.Add(-cost)
		c.l.cost.Add(-cost)
	}
}

// accepted returns our connection below one that net/http holds.
func accepted(nc net.Conn) *conn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	return nc.(*conn)
}

// connKey is the context key for a request's connection.
type connKey struct{}

// connOf returns the connection of a request; nil if another server accepted it.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
