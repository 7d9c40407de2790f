package server

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarryhq/tarry/server/access"
)

// connections is a listener with a bound on open connections. When one more comes, it closes
// one that waits for its client: the longest waiting of the peer with waiting connections that
// take the most memory. So silent and slow clients keep nobody out, and a peer's connections
// push out each other before those of others.
type connections struct {
	net.Listener
	cfg *Config

	mu      sync.Mutex
	open    map[*conn]struct{}
	peers   map[netip.Prefix]*peer
	stopped bool
	done    sync.WaitGroup // connections that have not ended

	cost atomic.Int64 // bytes of memory for the connections that wait for their clients
}

// peer is the source of connections: an IPv4 address, or an IPv6 network.
type peer struct {
	from netip.Prefix
	open int          // connections
	cost atomic.Int64 // of its waiting connections
}

// The bounds for closing connections.
const (
	leastWait  = 100 * time.Millisecond // a connection that was just opened or answered is kept this long
	bodyGrace  = 5 * time.Second        // one that waits for more of a body counts as waiting only after this, unless no other waits
	maxSurplus = 64                     // connections beyond the bound that get 503; further ones are closed

	// maxWaiting bounds the memory of all connections that wait for their clients. Each costs
	// the buffers of net/http. Each byte of a request head costs its share of a map of very
	// short headers.
	maxWaiting = 48 << 20
	connCost   = 11 << 10
	headCost   = 20

	// sendBuffer is how much of an answer the kernel buffers. The kernel wakes the writer when
	// a third is free again. Slow clients must be able to read that third within the timeout.
	sendBuffer = 128 << 10
)

func newConnections(ln net.Listener, cfg *Config) *connections {
	return &connections{Listener: ln, cfg: cfg, open: make(map[*conn]struct{}), peers: make(map[netip.Prefix]*peer)}
}

// Accept returns the next connection for which there is room.
func (l *connections) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, hinted(err)
		}
		if tcp, ok := nc.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // if it fails, very slow clients are cut early
		}
		c := &conn{Conn: nc, l: l}
		if l.admit(c) {
			return c, nil
		}
		_ = nc.Close()
	}
}

// noFile is the error of Accept when no file descriptor was free. net/http logs it and tries
// again.
type noFile struct {
	*net.OpError
	hint string
}

func (e noFile) Error() string { return e.OpError.Error() + ": " + e.hint }

// hinted adds to an error of Accept which limit to raise, if file descriptors ran out.
func hinted(err error) error {
	op, ok := err.(*net.OpError)
	switch {
	case ok && errors.Is(err, syscall.EMFILE):
		return noFile{op, "this process may open no more files; raise its limit (LimitNOFILE= in the systemd unit, ulimit -n in a shell) or lower --max-connections"}
	case ok && errors.Is(err, syscall.ENFILE):
		return noFile{op, "this machine may open no more files; raise its limit (sysctl fs.file-max)"}
	}
	return err
}

func (l *connections) admit(c *conn) bool {
	from := access.HostOf(c.RemoteAddr().String())
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.cfg.MaxConnections || l.cost.Load() > maxWaiting-connCost {
		l.evict()
	}
	c.surplus = len(l.open) >= l.cfg.MaxConnections
	if l.stopped || len(l.open) >= l.cfg.MaxConnections+maxSurplus {
		return false
	}
	if c.peer = l.peers[from]; c.peer == nil {
		c.peer = &peer{from: from}
		l.peers[from] = c.peer
	}
	c.peer.open++
	l.open[c] = struct{}{}
	l.done.Add(1)
	c.setWaiting(time.Now(), true)
	return true
}

// evict closes a connection that waits for its client, and reports whether there was one.
// Called with l.mu held.
func (l *connections) evict() bool {
	bodies := false // also take connections within their bodyGrace
	for recent := time.Now().Add(-leastWait).UnixNano(); ; {
		var victim *conn
		var since, most int64
		for c := range l.open {
			t, n := c.waits.Load(), c.peer.cost.Load()
			rests := t <= recent || bodies && !c.heading.Load() && t <= recent+int64(bodyGrace)
			if t != 0 && rests && (victim == nil || n > most || n == most && t < since) {
				victim, since, most = c, t, n
			}
		}
		if victim == nil && bodies {
			return false
		}
		if victim == nil {
			bodies = true
			continue
		}
		if victim.waits.CompareAndSwap(since, 0) {
			victim.setBusy()
			delete(l.open, victim)
			_ = victim.Conn.Close() // not through TLS: its closing alert may have to wait
			return true
		}
	}
}

// changed is http.Server.ConnState. A connection is active once the head of a request has
// been read.
func (l *connections) changed(nc net.Conn, state http.ConnState) {
	c := accepted(nc)
	switch state {
	case http.StateIdle:
		c.setWaiting(time.Now(), true)
	case http.StateActive:
		c.setBusy()
	case http.StateClosed, http.StateHijacked:
		c.setBusy()
		l.mu.Lock()
		delete(l.open, c)
		if c.peer.open--; c.peer.open == 0 {
			delete(l.peers, c.peer.from)
		}
		l.mu.Unlock()
		l.done.Done()
	}
}

// stop closes the connections that wait for a request, and refuses new ones. net/http itself
// would wait 5 s for a connection that never sent a request.
func (l *connections) stop() {
	now := time.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for c := range l.open {
		if t := c.waits.Load(); t != 0 && t <= now {
			_ = c.Conn.Close()
		}
	}
}
