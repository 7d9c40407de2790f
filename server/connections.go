package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/sparse"
)

// connections is a listener that hands out at most so many connections at a time.
// When there is one more it closes that which has been idle for longest, between
// requests or before the first, and when none is idle it refuses the new one with an
// answer, rather than let it wait without a word.
type connections struct {
	net.Listener
	most int
	cfg  *Config
	told *sparse.Lines // of handshakes that failed

	mu       sync.Mutex
	open     map[*conn]struct{}
	refusals int
	done     sync.WaitGroup // connections and refusals that have not ended
}

func newConnections(ln net.Listener, cfg *Config) *connections {
	return &connections{Listener: ln, most: cfg.MaxConnections, cfg: cfg, told: sparse.New(10, 10*time.Second), open: make(map[*conn]struct{})}
}

// Accept returns the next connection for which there is room.
func (l *connections) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := newConn(nc, l.cfg.WriteTimeout)
		if l.cfg.TLS == nil {
			if l.admit(c) {
				return c, nil
			}
			continue
		}
		secure := tls.Server(nc, l.cfg.TLS)
		if c.Conn = secure; l.admit(c) {
			return &secureConn{c, secure, l.cfg.ReadHeaderTimeout, l.cfg.Logger, l.told}, nil
		}
	}
}

func (l *connections) admit(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most && !l.evict() {
		if l.refusals == maxRefusals {
			_ = c.Close()
			return false
		}
		l.refusals++
		l.done.Go(func() { l.refuse(c) })
		return false
	}
	c.idle.Store(time.Now().UnixNano())
	l.open[c] = struct{}{}
	l.done.Add(1)
	return true
}

// leastIdle is how long a connection rests before it may have to make room: one that
// has just been opened, or used, is about to be.
const leastIdle = 100 * time.Millisecond

// evict closes the connection that has been idle for longest.
func (l *connections) evict() bool {
	recent := time.Now().Add(-leastIdle).UnixNano()
	for {
		var longest *conn
		var since int64
		for c := range l.open {
			if t := c.idle.Load(); t != 0 && t <= recent && (longest == nil || t < since) {
				longest, since = c, t
			}
		}
		if longest == nil {
			return false
		}
		if longest.idle.CompareAndSwap(since, 0) {
			delete(l.open, longest)
			longest.cut()
			return true
		}
	}
}

// changed is http.Server.ConnState.
func (l *connections) changed(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		c = nc.(*secureConn).conn
	}
	switch state {
	case http.StateIdle:
		c.idle.Store(time.Now().UnixNano())
	case http.StateActive:
		c.idle.Store(0)
	case http.StateClosed, http.StateHijacked:
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
		l.done.Done()
	}
}

// wait waits until all connections have ended, with their requests, but no longer
// than the time given.
func (l *connections) wait(most time.Duration) {
	ended := make(chan struct{})
	go func() {
		l.done.Wait()
		close(ended)
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// The bounds of refusing a connection.
const (
	maxRefusals   = 64 // at a time; beyond it connections are closed without a word
	refuseTimeout = 2 * time.Second
	maxRefused    = 64 << 10 // bytes of the request that are read
)

var refused = lastAnswer(refusal(http.StatusServiceUnavailable, "unavailable", "the server holds as many connections as it may",
	"try again, with fewer connections; tarry serve --max-connections allows more"), "Retry-After: 1")

// refuse answers whatever is asked, and reads on for a moment: a connection that is
// closed with something unread takes the answer away again.
func (l *connections) refuse(c *conn) {
	defer func() {
		_ = c.Close()
		l.mu.Lock()
		l.refusals--
		l.mu.Unlock()
	}()
	_ = c.SetReadDeadline(time.Now().Add(refuseTimeout))
	if _, err := c.Read(make([]byte, 4<<10)); err != nil {
		return
	}
	c.timeout = min(c.timeout, refuseTimeout)
	if _, err := c.write(refused); err != nil {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.CopyN(io.Discard, c, maxRefused)
}
