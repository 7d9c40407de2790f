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

	readBy, writeBy deadline

	left  context.CancelFunc // ends the contexts of its requests
	mu    sync.Mutex
	brief time.Time // since when a brief request is at work; zero: none is
	timed bool      // look is going to be called
	ahead *ahead    // what look has begun to read
}

// Read charges for the bytes it reads of a request head.
func (c *conn) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	brief, a := !c.brief.IsZero(), c.ahead
	c.ahead = nil
	c.mu.Unlock()
	switch {
	case brief && len(p) == 1:
		return 0, nil // it is net/http's read in the background
	case a != nil && a.into(p, &n, &err):
	default:
		n, err = c.read(p)
	}
	if n > 0 && c.heading.Load() && !c.charge(int64(n)*headCost) {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) read(p []byte) (n int, err error) {
	for {
		if n, err = c.Conn.Read(p); err == nil || !c.readBy.goesOn(err, c.Conn.SetReadDeadline) {
			return n, err
		}
	}
}

// Write writes all of p.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		m, err := c.Conn.Write(p[n:])
		if n += m; err == nil || !c.writeBy.goesOn(err, c.Conn.SetWriteDeadline) {
			return n, err
		}
	}
}

// SetReadDeadline sets until when a Read waits.
func (c *conn) SetReadDeadline(t time.Time) error { return c.readBy.set(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline sets until when a Write waits.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.writeBy.set(t, c.Conn.SetWriteDeadline) }

// deadline is a deadline that is moved at each request and hardly ever passes. The timer below
// is moved only if it would fire too late. If it fires too early, the call goes on.
type deadline struct {
	mu    sync.Mutex
	by    time.Time // zero: none
	timer time.Time // what is set below; zero: none
}

func (d *deadline) set(t time.Time, below func(time.Time) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.by = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	d.timer = t
	return below(t)
}

// goesOn reports whether a call that ended with err goes on, since the deadline has not passed.
func (d *deadline) goesOn(err error, below func(time.Time) error) bool {
	if !isTimeout(err) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.by.IsZero() && !time.Now().Before(d.by) {
		return false
	}
	d.timer = d.by
	return below(d.by) == nil
}

// briefly is how long a request may take until it is watched whether its client leaves.
const briefly = 100 * time.Millisecond

// ahead is a read of the first byte of the next request, or of the connection's end.
type ahead struct {
	done chan struct{}
	b    [1]byte
	n    int
	err  error
}

// setBrief notes that the request, which has been read whole, probably ends soon. Then
// net/http's watch for the end of the connection is not worth its cost, a read and two
// switches of goroutines. If the request takes long, look watches.
func (c *conn) setBrief(now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brief = now; !now.IsZero() && !c.timed {
		c.timed = true
		time.AfterFunc(briefly, c.look)
	}
}

// look watches for the end of the connection if a request takes long.
func (c *conn) look() {
	c.mu.Lock()
	c.timed = false
	since := c.brief
	if since.IsZero() {
		c.mu.Unlock()
		return
	}
	if rest := briefly - time.Since(since); rest > 0 {
		c.timed = true
		time.AfterFunc(rest, c.look)
		c.mu.Unlock()
		return
	}
	a := &ahead{done: make(chan struct{})}
	c.brief, c.ahead = time.Time{}, a
	c.mu.Unlock()
	if a.n, a.err = c.read(a.b[:]); a.err != nil && !isTimeout(a.err) {
		c.left()
	}
	close(a.done)
}

// into waits for the read, and hands over what it read. It returns false if that is nothing.
func (a *ahead) into(p []byte, n *int, err *error) bool {
	<-a.done
	*n, *err = copy(p, a.b[:a.n]), a.err
	return a.n > 0 || !isTimeout(a.err)
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

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
