package redistest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy passes connections on to a server, and spoils them as it is told.
type Proxy struct {
	t    testing.TB
	to   string
	port int
	work sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	links    map[*link]bool
	dropping bool
	doomed   int // which answer from now on is lost; 0: none
	lost     bool
}

// link is one connection through a proxy.
type link struct {
	client net.Conn
	server net.Conn // nil before it is there
	cut    bool
	deaf   bool // it has lost an answer, so later ones would be taken for it
}

// StartProxy starts a proxy for the server at a host:port.
func StartProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, to: to, links: make(map[*link]bool)}
	p.port = freePort(t)
	p.Refuse(false)
	t.Cleanup(p.close)
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return loopback(p.port) }

// URL is the redis:// URL of the server as seen through the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// Cut resets all connections, and ends DropReplies. What was passed on to the
// server before is still executed.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropping = false
	for k := range p.links {
		if c, ok := k.client.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // it may be closed already
		}
		k.close()
	}
}

// Refuse sets whether new connections are refused; those that are there stay.
func (p *Proxy) Refuse(refuse bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case refuse && p.listener != nil:
		_ = p.listener.Close() // it is given up whatever this says
		p.listener = nil
		// A process just being started elsewhere shares the listener for a moment.
		await(p.t, "connections to be refused", func() error {
			c, err := net.Dial("tcp", p.Addr())
			if err != nil {
				return nil
			}
			_ = c.Close() // nothing was sent
			return errors.New("one was made")
		})
	case !refuse && p.listener == nil:
		l, err := net.Listen("tcp", p.Addr())
		if err != nil {
			p.t.Fatal(err)
		}
		p.listener = l
		p.work.Go(func() { p.accept(l) })
	}
}

// DropReplies sets whether what the server answers is lost, on connections new
// and old. One that has lost something gets no answers any more until it is cut.
func (p *Proxy) DropReplies(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropping = drop
}

// LoseAnswer lets the n-th answer from now on be lost, with its connection; 0: none.
// It reports whether the one asked for before was.
func (p *Proxy) LoseAnswer(n int) (lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost = p.lost
	p.doomed, p.lost = n, false
	return lost
}

// loses counts an answer, and reports whether it is the one to lose.
func (p *Proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doomed == 0 {
		return false
	}
	p.doomed--
	p.lost = p.doomed == 0
	return p.lost
}

func (p *Proxy) close() {
	p.Refuse(true)
	p.Cut()
	p.work.Wait()
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.listener == l {
			k := &link{client: client}
			p.links[k] = true
			p.work.Go(func() { p.serve(k) })
		} else {
			_ = client.Close() // too late
		}
		p.mu.Unlock()
	}
}

func (p *Proxy) serve(k *link) {
	defer p.forget(k)
	server, err := net.DialTimeout("tcp", p.to, patience)
	if err != nil || !p.connect(k, server) {
		return
	}
	p.work.Go(func() {
		defer p.forget(k)
		_, _ = io.Copy(server, k.client) // ends when either side does
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && p.loses() {
			return
		}
		if n > 0 && !p.drops(k) {
			if _, err := k.client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// connect gives a link its other side, unless it was cut meanwhile.
func (p *Proxy) connect(k *link, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.cut {
		_ = server.Close() // nothing was sent
		return false
	}
	k.server = server
	return true
}

func (p *Proxy) drops(k *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.deaf = k.deaf || p.dropping
	return k.deaf
}

func (p *Proxy) forget(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, k)
	k.close()
}

func (k *link) close() {
	k.cut = true
	_ = k.client.Close() // closing again does no harm
	if k.server != nil {
		_ = k.server.Close()
	}
}
