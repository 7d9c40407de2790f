package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
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
	surplus bool         // it is one too many: every request gets 503

	left context.CancelFunc // ends the contexts of its requests

	mu      sync.Mutex
	last    time.Time // when writing must have ended; zero: as long as the client reads
	brief   time.Time // since when a brief request is at work; zero: none is
	timed   bool      // look is going to be called
	ahead   *ahead    // what look has begun to read
	watched bool      // net/http watches
}

// Read charges for the bytes it reads of a request head.
func (c *conn) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	watch := len(p) == 1 // net/http's read in the background
	if watch && !c.brief.IsZero() {
		c.mu.Unlock()
		return 0, nil
	}
	a := c.ahead
	c.ahead, c.watched = nil, watch
	c.mu.Unlock()
	if a != nil {
		<-a.done
		n, err = copy(p, a.b[:a.n]), a.err
	}
	if n == 0 && err == nil {
		n, err = c.Conn.Read(p)
	}
	if n > 0 && c.heading.Load() && !c.charge(int64(n)*headCost) {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// Write gives the client WriteTimeout to read each stride.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		c.boundWrite()
		m, err := c.Conn.Write(p[n:min(n+stride, len(p))])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

func (c *conn) boundWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := time.Now().Add(c.l.cfg.WriteTimeout)
	if !c.last.IsZero() && c.last.Before(by) {
		by = c.last
	}
	_ = c.Conn.SetWriteDeadline(by) // if it fails, Write does
}

// SetWriteDeadline sets until when all writing must have ended; zero: as long as the client
// reads.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last = t; t.IsZero() {
		return nil // Write sets the next
	}
	return c.Conn.SetWriteDeadline(t)
}

// briefly is how long a request may take until it is watched whether its client leaves.
const briefly = 100 * time.Millisecond

// ahead is a read of the first byte of the next request, or of the connection's end.
type ahead struct {
	done chan struct{}
	b    [1]byte
	n    int // 0 without err: nothing came until the deadline
	err  error
}

// setBrief notes that the request, which has been read whole, probably ends soon. Then
// net/http's watch for the end of the connection is not worth its cost, a read and two
// switches of goroutines. If the request takes long, look watches. TLS reads ahead itself. Zero:
// the request has ended.
func (c *conn) setBrief(now time.Time) {
	if c == nil || c.l.cfg.TLS != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brief = now; now.IsZero() {
		c.watched = false
	} else if !c.timed {
		c.timed = true
		time.AfterFunc(briefly, c.look)
	}
}

// look watches for the end of the connection if a request takes long. It reads beside no other
// watch, since bytes could change places.
func (c *conn) look() {
	c.mu.Lock()
	rest := briefly - time.Since(c.brief)
	if c.timed = rest > 0; c.timed {
		time.AfterFunc(rest, c.look)
	}
	if c.timed || c.brief.IsZero() || c.watched || c.ahead != nil {
		c.mu.Unlock()
		return
	}
	a := &ahead{done: make(chan struct{})}
	c.brief, c.ahead = time.Time{}, a
	c.mu.Unlock()
	a.n, a.err = c.Conn.Read(a.b[:])
	if errors.Is(a.err, os.ErrDeadlineExceeded) {
		a.err = nil
	} else if a.err != nil {
		c.left()
	}
	close(a.done)
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
