package httpengine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// transport makes the requests to one server without TLS. Whoever asks writes the
// request and reads the answer by himself: the one of net/http has two goroutines a
// connection for that, and where requests are small, waking them costs more than all
// else.
type transport struct {
	addr   string
	dialer net.Dialer

	mu     sync.Mutex
	idle   []*conn // the one used last is the last
	timed  bool    // trim will come
	closed bool
}

// conn is a connection to the server.
type conn struct {
	net.Conn
	t   *transport
	in  *bufio.Reader
	out *bufio.Writer
	at  time.Time // since when it is idle

	head int // how much more the head of an answer may have; below 0: it is not being read
}

const (
	// maxIdle is how many connections are kept open between calls.
	maxIdle = 256
	// maxRest is for how long. The server's is longer: it must not be the first to
	// hang up.
	maxRest = time.Minute
	// bufferSize is how much of a request is written, and of an answer read, at a time.
	bufferSize = 32 << 10
	// maxHead is how long the head of an answer may be, with all that comes ahead of it.
	maxHead = 64 << 10

	dialTimeout = 5 * time.Second
	keepAlive   = 15 * time.Second
)

func newTransport(addr string) *transport {
	return &transport{addr: addr, dialer: net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}}
}

// RoundTrip makes a request. Its connection is used again once the body of the answer
// has been read to its end.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	c, err := t.conn(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.ask(req)
	if err != nil {
		stop()
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, c: c, stop: stop, keep: !resp.Close && !req.Close}
	return resp, nil
}

var errHead = fmt.Errorf("the head of the answer is longer than %d bytes", maxHead)

// Read reads no more of the head of an answer than maxHead.
func (c *conn) Read(p []byte) (int, error) {
	if c.head < 0 {
		return c.Conn.Read(p)
	}
	if c.head == 0 {
		return 0, errHead
	}
	n, err := c.Conn.Read(p[:min(len(p), c.head)])
	c.head -= n
	return n, err
}

// ask writes a request and reads the head of its answer, which may come before the
// server has read all of the request, and instead of that.
func (c *conn) ask(req *http.Request) (*http.Response, error) {
	err := req.Write(c.out)
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		req.Close = true
	}
	c.head = maxHead
	defer func() { c.head = -1 }()
	for {
		resp, readErr := http.ReadResponse(c.in, req)
		switch {
		case readErr == nil && resp.StatusCode/100 == 1:
			continue // what comes ahead of the answer
		case readErr != nil && err != nil:
			return nil, err
		case readErr != nil && c.head == 0:
			return nil, errHead // and not what is missing in it for that reason
		}
		return resp, readErr
	}
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	c    *conn
	stop func() bool
	keep bool // the connection
	read bool // all of it
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = b.read || err == io.EOF
	return n, err
}

// Close lets go of the connection. It is called once.
func (b *body) Close() error {
	if b.stop() && b.keep && b.read {
		b.c.t.put(b.c)
		return nil
	}
	return b.c.Close()
}

// conn returns an idle connection, or a new one.
func (t *transport) conn(ctx context.Context) (*conn, error) {
	for {
		t.mu.Lock()
		n := len(t.idle)
		if n == 0 {
			t.mu.Unlock()
			break
		}
		c := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		if c.in.Buffered() == 0 && alive(c.Conn) {
			return c, nil
		}
		_ = c.Close()
	}
	nc, err := t.dialer.DialContext(ctx, "tcp", t.addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, t: t, out: bufio.NewWriterSize(nc, bufferSize)}
	c.in = bufio.NewReaderSize(c, bufferSize)
	return c, nil
}

// put keeps a connection for the next request.
func (t *transport) put(c *conn) {
	c.at = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.idle) == maxIdle {
		_ = c.Close()
		return
	}
	t.idle = append(t.idle, c)
	if !t.timed {
		t.timed = true
		time.AfterFunc(maxRest, t.trim)
	}
}

// trim closes the connections that have been idle for long.
func (t *transport) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for now := time.Now(); n < len(t.idle) && now.Sub(t.idle[n].at) >= maxRest; n++ {
		_ = t.idle[n].Close()
	}
	t.idle = append([]*conn(nil), t.idle[n:]...)
	if t.timed = len(t.idle) > 0; t.timed {
		time.AfterFunc(time.Until(t.idle[0].at.Add(maxRest)), t.trim)
	}
}

// CloseIdleConnections closes those, and from now on each with its answer.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, c := range t.idle {
		_ = c.Close()
	}
	t.idle = nil
}
