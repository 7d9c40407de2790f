package servertest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/nettest"
)

// Proxy forwards connections to a server and injects faults.
type Proxy struct {
	t    testing.TB
	url  string // of the server
	to   string
	port int
	work sync.WaitGroup

	mu           sync.Mutex
	listener     net.Listener // nil while connections are refused
	links        map[*link]bool
	dropping     bool
	loseAnswerNo int // which of the next answers is lost; 0: none
	lost         bool
	delay        time.Duration
	hung         chan struct{} // closed when forwarding continues; nil: it was not stopped
	wanted       string        // the next request that contains this text is withheld; "": none
	withheld     *withheld     // the withheld request
}

// withheld is a request that the proxy has not forwarded.
type withheld struct {
	request  []byte
	server   net.Conn
	answered chan struct{} // closed when the server has answered or hung up
}

// link is one connection through a proxy.
type link struct {
	client      net.Conn
	server      net.Conn // nil before it is connected
	cut         bool
	gone        chan struct{} // closed when the link is cut
	repliesLost bool          // an answer was lost: a later one would be mistaken for it
	ended       chan struct{} // closed at the end of the server's answers
}

// StartProxy starts a proxy for the server of a URL.
func StartProxy(t testing.TB, of string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, url: of, links: make(map[*link]bool)}
	At(t, of, func(u *url.URL) { p.to = u.Host })
	p.port = nettest.FreePort(t)
	p.Refuse(false)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address on which the proxy listens.
func (p *Proxy) Addr() string { return loopback(p.port) }

// URL returns the server's URL with the proxy's address.
func (p *Proxy) URL() string {
	p.t.Helper()
	return At(p.t, p.url, func(u *url.URL) { u.Host = p.Addr() })
}

// Cut resets all connections, and ends DropReplies. The server still executes the requests
// that it got.
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

// Refuse sets whether new connections are refused. Existing ones stay.
func (p *Proxy) Refuse(refuse bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case refuse && p.listener != nil:
		_ = p.listener.Close() // whatever it returns, it is closed
		p.listener = nil
		// A process that is being started also has the listener for a moment.
		Await(p.t, "connections to be refused", func() error {
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

// DropReplies sets whether the server's answers are lost, on old and new connections. A
// connection that has lost an answer gets none until it is cut.
func (p *Proxy) DropReplies(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropping = drop
}

// Lead directs new connections to another server. Existing ones stay.
func (p *Proxy) Lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// Hang sets whether the proxy stops forwarding in both directions. Connections stay open, and
// new ones are accepted. When Hang ends, forwarding continues.
func (p *Proxy) Hang(hang bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case hang && p.hung == nil:
		p.hung = make(chan struct{})
	case !hang && p.hung != nil:
		close(p.hung)
		p.hung = nil
	}
}

// Delay delays each piece of later answers; 0: no delay.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// LoseAnswer drops the n-th answer from now on and its connection; 0: none. It reports
// whether the answer chosen by the previous call was lost.
func (p *Proxy) LoseAnswer(n int) (lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost = p.lost
	p.loseAnswerNo, p.lost = n, false
	return lost
}

// Withhold withholds from the server the next request that contains a text, and breaks the
// client's connection. Deliver forwards the request.
func (p *Proxy) Withhold(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = text
}

// Deliver forwards the withheld request to the server, waits for the answer and drops it. It
// reports whether a request was withheld.
func (p *Proxy) Deliver() bool {
	p.t.Helper()
	p.mu.Lock()
	w := p.withheld
	p.wanted, p.withheld = "", nil
	p.mu.Unlock()
	if w == nil {
		return false
	}
	defer w.server.Close()
	if _, err := w.server.Write(w.request); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-w.answered:
	case <-time.After(Patience):
		p.t.Fatal("the server does not answer what was delivered late")
	}
	return true
}

// HangUp closes the connection of the withheld request, which the server never gets.
func (p *Proxy) HangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.withheld != nil {
		_ = p.withheld.server.Close() // whatever it returns, it is closed
		p.withheld = nil
	}
}

// withholds reports whether to withhold a request, and if so records it.
func (p *Proxy) withholds(k *link, request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == "" || k.cut || !bytes.Contains(request, []byte(p.wanted)) {
		return false
	}
	p.wanted = ""
	p.withheld = &withheld{slices.Clone(request), k.server, k.ended}
	k.server = nil // it outlives the link
	return true
}

// loses counts an answer, and reports whether to drop it.
func (p *Proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loseAnswerNo == 0 {
		return false
	}
	p.loseAnswerNo--
	p.lost = p.loseAnswerNo == 0
	return p.lost
}

func (p *Proxy) close() {
	p.Refuse(true)
	p.Cut()
	p.mu.Lock()
	if p.withheld != nil {
		_ = p.withheld.server.Close() // it is not needed any more
	}
	p.mu.Unlock()
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
			k := &link{client: client, gone: make(chan struct{}), ended: make(chan struct{})}
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
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", to, Patience)
	if err != nil || !p.connect(k, server) {
		return
	}
	p.work.Go(func() {
		defer p.forget(k)
		pass(server, k.client, func(request []byte) fate {
			if p.withholds(k, request) {
				return ended
			}
			return p.wait(k, 0)
		})
	})
	defer close(k.ended)
	pass(k.client, server, func([]byte) fate {
		if p.loses() {
			return ended
		}
		return max(p.wait(k, p.delayed()), p.drops(k))
	})
}

// fate says what happens to a piece of data in the proxy.
type fate int

const (
	passed  fate = iota
	dropped      // the piece is dropped
	ended        // the piece is dropped and its link closed
)

// pass forwards data from one side of a link to the other until either side ends.
func pass(to io.Writer, from io.Reader, next func(piece []byte) fate) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			f := next(buf[:n])
			if f == ended {
				return
			}
			if f == passed {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) delayed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// wait delays a piece, and waits while the proxy hangs.
func (p *Proxy) wait(k *link, delay time.Duration) fate {
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-k.gone:
			return ended
		}
	}
	p.mu.Lock()
	hung := p.hung
	p.mu.Unlock()
	if hung == nil {
		return passed
	}
	select {
	case <-hung:
		return passed
	case <-k.gone:
		return ended
	}
}

// connect sets the server's side of a link. It returns false if the link was cut meanwhile.
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

func (p *Proxy) drops(k *link) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.repliesLost = k.repliesLost || p.dropping
	if k.repliesLost {
		return dropped
	}
	return passed
}

func (p *Proxy) forget(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, k)
	k.close()
}

func (k *link) close() {
	if !k.cut {
		close(k.gone)
	}
	k.cut = true
	_ = k.client.Close() // closing again does no harm
	if k.server != nil {
		_ = k.server.Close()
	}
}
